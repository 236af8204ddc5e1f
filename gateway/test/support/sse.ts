/** One event of a stream as text. */
export type StreamEvent = { event: string | undefined; data: string }

/** Splits a finished event stream; deliberately simple, and independent of the gateway's own parser. */
export function eventsOf(text: string): StreamEvent[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter((block) => block.split('\n').some((line) => !line.startsWith(':') && line !== ''))
    .map((block) => {
      const fields = (name: string) =>
        block
          .split(/\r?\n/)
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
      return { event: fields('event')[0], data: fields('data').join('\n') }
    })
}

/** Reads a body to its end or to where it breaks off. */
export async function readStream(response: Response): Promise<{ text: string; broken: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
    return { text, broken: false }
  } catch {
    return { text, broken: true }
  }
}
