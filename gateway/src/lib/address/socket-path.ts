/** Longest path of a Unix domain socket on Linux and macOS, in bytes. */
const maxPathBytes = 103

/**
 * Path in `unix:/path`, the address of a Unix domain socket. Undefined for anything else: relative paths,
 * control characters, and paths longer than systems support.
 */
export function parseSocketPath(text: string): string | undefined {
  const path = /^unix:(\/[^\p{Cc}]+)$/u.exec(text)?.[1]
  return path !== undefined && Buffer.byteLength(path) <= maxPathBytes ? path : undefined
}

/** Whether a text is meant as the address of a Unix domain socket, valid or not. */
export function isSocketAddress(text: string): boolean {
  return /^\s*unix:/i.test(text)
}
