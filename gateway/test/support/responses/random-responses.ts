/** Random numbers from a seed: below 1, or an integer below a limit. */
export type Random = { next(): number; below(limit: number): number; oneOf<T>(items: readonly T[]): T }

/** Repeatable random numbers (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return { next, below, oneOf: (items) => items[below(items.length)] as never }
}

const versions = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'HTTP/0.9',
  'http/1.1',
  'HTTP/1.2',
]
const statuses = [
  '200',
  '200',
  '200',
  '204',
  '304',
  '404',
  '500',
  '100',
  '103',
  '101',
  '099',
  '1000',
  '20',
  '999',
]
const reasons = [' OK', ' ', '', ' Not Found', ' \tx', ' caf\u00e9', '  ', ' a\u0001']
const connections = ['keep-alive', 'close', 'Keep-Alive, close', 'upgrade', ', keep-alive', 'TE, close']
const lengths = [
  '0',
  '3',
  '5',
  '05',
  '+5',
  '-1',
  '5, 5',
  '5 ',
  '',
  '0x5',
  '99999999999999999999',
  '5\u0000',
  '1e1',
  '5;',
]
const codings = [
  'chunked',
  'Chunked',
  'gzip, chunked',
  'chunked, gzip',
  'identity',
  'chunked, chunked',
  ' chunked ',
  'x',
  '',
  'chunke',
  'chunked\u000b',
]
const names = [
  'x-a',
  'X-B',
  'set-cookie',
  'date',
  '__proto__',
  'constructor',
  'a b',
  'x-a ',
  '',
  'x(',
  'caf\u00e9',
  ':x',
  'x'.repeat(40),
]
const values = [
  '',
  'v',
  ' v ',
  '\tv\t',
  'a\u00e9',
  'a\u0001',
  'a\u0000',
  'a\rb',
  'a\nb',
  'a\r\n b',
  'a\u007f',
  ',',
  'a: b',
]
const extensions = ['', '', '', ';a', ';a=b', ';a="b c"', ' ;a', '; a = b', ' ', ';\u0001', ';a=\n', ';']
const sizes = ['3', '5', '0', '00', '003', 'A', 'a', 'g', '', '-1', '0x3', '1'.repeat(20), '3 ']
const lineEnds = [
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\r\n',
  '\n',
  '\r',
  '\r\r\n',
  '\n\r',
]
const strange = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '5',
  'a',
  '\u0000',
  '\u007f',
  '\u0080',
  '\u00ff',
  '-',
  '\r\n\r\n',
  'HTTP/1.1 200 OK',
]

/** A response near the borders of the grammar, as latin1 text. */
export function randomResponse(random: Random): string {
  let text = random.below(12) === 0 ? randomMessage(random, random.oneOf(['100', '103'])) : ''
  text += randomMessage(random, undefined)
  if (random.below(6) === 0) text += random.oneOf(strange)
  for (let changes = random.below(4) === 0 ? random.below(4) : 0; changes > 0; changes--)
    text = mutate(text, random)
  return text
}

function randomMessage(random: Random, informational: string | undefined): string {
  const rare = <T>(usual: T, others: readonly T[]) => (random.below(8) === 0 ? random.oneOf(others) : usual)
  const lineEnd = () => (random.below(60) === 0 ? random.oneOf(lineEnds) : '\r\n')
  let text = `${rare('HTTP/1.1', versions)} ${informational ?? random.oneOf(['200', random.oneOf(statuses)])}${random.oneOf(reasons.slice(0, 4))}${lineEnd()}`
  for (let fields = random.below(4); fields > 0; fields--) {
    text += `${random.oneOf(names.slice(0, rare(6, [names.length])))}:${random.oneOf(values.slice(0, rare(5, [values.length])))}${lineEnd()}`
  }
  const framing = random.below(8)
  if (random.below(6) === 0) text += `connection: ${random.oneOf(connections)}${lineEnd()}`
  const hasLength = framing < 3 || framing === 7
  const hasCoding = (framing >= 3 && framing < 6) || (framing === 7 && random.below(2) === 0)
  if (hasLength) text += `Content-Length: ${rare('5', lengths)}${lineEnd()}`
  if (hasLength && random.below(12) === 0) text += `content-length: ${rare('5', lengths)}${lineEnd()}`
  if (hasCoding) text += `Transfer-Encoding: ${rare('chunked', codings)}${lineEnd()}`
  if (hasCoding && random.below(12) === 0)
    text += `transfer-encoding: ${rare('chunked', codings)}${lineEnd()}`
  text += lineEnd()
  if (informational !== undefined) return text
  return (
    text +
    (hasCoding ? randomChunks(random, lineEnd) : random.oneOf(['hello', 'hello', 'hel', 'hello world', '']))
  )
}

function randomChunks(random: Random, lineEnd: () => string): string {
  let text = ''
  for (let chunks = random.below(4); chunks > 0; chunks--) {
    const [size, data] = random.oneOf([
      ['3', 'abc'],
      ['a', '0123456789'],
      ['05', 'hello'],
      [random.oneOf(sizes), 'abc'],
    ])
    text += `${size}${random.oneOf(extensions)}${lineEnd()}${data}${lineEnd()}`
  }
  if (random.below(10) === 0) return text
  text += `0${random.oneOf(extensions.slice(0, 5))}${lineEnd()}`
  for (let fields = random.below(6) === 0 ? 1 + random.below(2) : 0; fields > 0; fields--) {
    text += `${random.oneOf(names.slice(0, 7))}: ${random.oneOf(values.slice(0, 7))}${lineEnd()}`
  }
  return text + lineEnd()
}

function mutate(text: string, random: Random): string {
  const at = random.below(text.length + 1)
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at) + text.slice(at + 1)
    case 1:
      return text.slice(0, at) + random.oneOf(strange) + text.slice(at + 1)
    case 2:
      return text.slice(0, at)
    default:
      return text.slice(0, at) + random.oneOf(strange) + text.slice(at)
  }
}
