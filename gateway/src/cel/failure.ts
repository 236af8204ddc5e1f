/**
 * Failed evaluation of a part of an expression. Returned, not thrown: `&&` and `||` absorb it, and a missing
 * claim on the request path must not cost a stack trace.
 */
export class Failure {
  readonly message: string
  /** Whether the failure is an unset variable, for which `has()` returns false. */
  readonly unset: boolean

  constructor(message: string, unset: boolean = false) {
    this.message = message
    this.unset = unset
  }
}

/** Failed evaluation of an expression. The message contains keys, types and functions, never values. */
export class CelEvaluationError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'CelEvaluationError'
  }
}

const missingKey = 'no such key'

/** The message of a failed evaluation with names of the expression only: a computed key is a value. */
export function describeFailure({ message, cause }: CelEvaluationError, source: string): string {
  if (message.startsWith(missingKey)) {
    const key = message.slice(missingKey.length + 2)
    return key !== '' && source.includes(key) ? message : missingKey
  }
  if (message.startsWith('index out of bounds')) return 'index out of bounds'
  // Messages of the library may contain values.
  return cause === undefined ? message : 'evaluation failed'
}
