/** A response that the parser refuses. */
export type Violation = {
  readonly kind: 'violation'
  /** `too_large`: a limit is exceeded; `malformed`: the message violates RFC 9112. */
  readonly reason: 'malformed' | 'too_large'
  readonly message: string
}

export function malformed(message: string): Violation {
  return { kind: 'violation', reason: 'malformed', message }
}

export function tooLarge(message: string): Violation {
  return { kind: 'violation', reason: 'too_large', message }
}
