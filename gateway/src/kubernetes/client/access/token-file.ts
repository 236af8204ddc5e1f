import type { Clock } from '../../../lib/clock.ts'

/** Reads a file as text. */
export type ReadText = (path: string) => string

/** Source of bearer tokens. */
export type TokenSource = {
  /** Current token. Throws if the first read of a file fails. */
  read(): string
  /** Requests another read of a file, after a token was refused. */
  expire(): void
}

/** Projected tokens are replaced after 80 % of a life time of at least 10 minutes. */
const rereadAfterMs = 60_000
/** Shortest time between two reads, while an API server refuses every token. */
const rereadLimitMs = 1_000

/**
 * Creates a source that reads the file again after a minute, because tokens of service accounts are replaced.
 * The last token remains in use if a later read fails.
 */
export function createTokenFile(
  path: string,
  readText: ReadText,
  { monotonic }: Pick<Clock, 'monotonic'>,
): TokenSource {
  let token: string | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let dueAt = Number.NEGATIVE_INFINITY

  return {
    read() {
      const now = monotonic()
      if (token !== undefined && now < dueAt) return token
      try {
        token = readText(path).trim()
      } catch (error) {
        if (token === undefined) throw error
      }
      readAt = now
      dueAt = now + rereadAfterMs
      return token
    },
    expire() {
      dueAt = Math.min(dueAt, readAt + rereadLimitMs)
    },
  }
}

/** A token that never changes. */
export function createFixedToken(token: string): TokenSource {
  return { read: () => token, expire() {} }
}
