const headEnd = Buffer.from('\r\n\r\n')

/** The reason why a response does not count, or undefined. */
export function failureOf({ status, tail }: Complete, chunk: Buffer, ending: string): string | undefined {
  if (status === 200 && tail.includes(ending)) return undefined
  return `status ${status}: ${chunk.toString('latin1').slice(0, 500)}`
}

export type Complete = { status: number; tail: string }

/** Finds the end of one response after the other; both framings, no pipelining. */
export function createReader(): (chunk: Buffer) => Complete | undefined {
  let head: Buffer | undefined
  let status = 0
  let chunked = false
  let left = -1
  let tail = ''
  return (received) => {
    let body = received
    if (left === -1) {
      const bytes = head ? Buffer.concat([head, received]) : received
      const end = bytes.indexOf(headEnd)
      if (end === -1) {
        head = bytes
        return undefined
      }
      head = undefined
      const text = bytes.toString('latin1', 0, end).toLowerCase()
      status = Number(text.slice(9, 12))
      const length = text.indexOf('\r\ncontent-length:')
      chunked = length === -1
      left = chunked ? 0 : Number.parseInt(text.slice(length + 17), 10)
      body = bytes.subarray(end + 4)
      tail = ''
    }
    tail =
      body.byteLength >= 64
        ? body.toString('latin1', body.byteLength - 64)
        : (tail + body.toString('latin1')).slice(-64)
    if (!chunked) left -= body.byteLength
    const ended = chunked ? tail.endsWith('\r\n0\r\n\r\n') || tail === '0\r\n\r\n' : left <= 0
    if (!ended) return undefined
    left = -1
    return { status, tail }
  }
}
