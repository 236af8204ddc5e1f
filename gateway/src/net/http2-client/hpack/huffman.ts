/**
 * Lengths of the codes of RFC 7541 Appendix B in bits, by symbol; the last one is the end of the string. The
 * code is canonical: codes of equal length are in the order of their symbols, so that lengths define it.
 */
const lengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
]

const endOfString = 256

/** A binary tree: two children for each node. A child above 0 is a node, one below 0 is `-1 - symbol`. */
const tree = buildTree()

function buildTree(): Int16Array {
  const symbols = lengths.map((_, symbol) => symbol).sort((a, b) => lengthOf(a) - lengthOf(b) || a - b)
  const nodes = new Int16Array(2 * symbols.length)
  let used = 1
  let code = 0
  let bits = 0
  for (const symbol of symbols) {
    const length = lengthOf(symbol)
    code *= 2 ** (length - bits)
    bits = length
    let node = 0
    for (let bit = length - 1; bit > 0; bit -= 1) {
      const child = 2 * node + ((code >>> bit) & 1)
      if (nodes[child] === 0) nodes[child] = used++
      node = nodes[child] ?? 0
    }
    nodes[2 * node + (code & 1)] = -1 - symbol
    code += 1
  }
  return nodes
}

function lengthOf(symbol: number): number {
  return lengths[symbol] ?? 0
}

/** Decodes a string of RFC 7541 section 5.2 to one character per byte. Throws `RangeError`. */
export function decodeHuffman(block: Uint8Array, start: number, end: number): string {
  // The shortest code has 5 bits.
  const decoded = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5))
  let length = 0
  let node = 0
  let pending = 0
  let isPadding = true
  for (let at = start; at < end; at += 1) {
    const byte = block[at] ?? 0
    for (let shift = 7; shift >= 0; shift -= 1) {
      const bit = (byte >>> shift) & 1
      const child = tree[2 * node + bit] ?? 0
      if (child >= 0) {
        node = child
        pending += 1
        isPadding &&= bit === 1
        continue
      }
      const symbol = -1 - child
      if (symbol === endOfString) throw new RangeError('a header string has the symbol of its end')
      decoded[length++] = symbol
      node = 0
      pending = 0
      isPadding = true
    }
  }
  if (pending > 7 || !isPadding) throw new RangeError('a header string has invalid padding')
  return decoded.toString('latin1', 0, length)
}
