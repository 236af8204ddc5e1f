/** Event of a server-sent event stream. */
export type ServerEvent = { readonly event: string; readonly data: string; readonly id?: string }

/** Longest event in characters; a longer one ends the stream with an error. */
const maxEventLength = 4 * 1024 * 1024

/** Reads a server-sent event stream (HTML Living Standard, 9.2.6) from a response. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    let rest = ''
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      rest += value
      const { blocks, remaining } = split(rest)
      rest = remaining
      if (rest.length > maxEventLength) throw new Error(`event larger than ${maxEventLength} characters`)
      for (const block of blocks) {
        const event = parse(block)
        if (event) yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function split(text: string): { blocks: string[]; remaining: string } {
  // A trailing carriage return may be half of a line end: it stays until the next chunk.
  const parts = text.split(/\r\n\r\n|\n\n|\r\r(?!\n)/)
  return { remaining: parts.pop() ?? '', blocks: parts }
}

function parse(block: string): ServerEvent | undefined {
  const fields = new Map<string, string[]>()
  for (const line of block.split(/\r\n|\n|\r/)) {
    if (line === '' || line.startsWith(':')) continue
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    fields.set(name, [...(fields.get(name) ?? []), value])
  }
  const data = fields.get('data')
  if (data === undefined) return undefined
  const id = fields.get('id')?.at(-1)
  return {
    event: fields.get('event')?.at(-1) ?? 'message',
    data: data.join('\n'),
    ...(id === undefined ? {} : { id }),
  }
}
