/**
 * Why a part of an expression has no value. Returned, not thrown: `&&` and `||` absorb it, and a missing claim on the
 * request path must not cost a stack trace.
 */
export class Failure {
  readonly message: string
  /** The failure is a variable that has no value, which `has()` answers with false. */
  readonly unset: boolean

  constructor(message: string, unset: boolean = false) {
    this.message = message
    this.unset = unset
  }
}

/** An expression could not be evaluated. The message names keys, types and functions, never values. */
export class CelEvaluationError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'CelEvaluationError'
  }
}

/** Thrown when a variable holds a value that only the library knows (bytes, a date). */
export class UnsupportedByClosures extends Error {
  constructor() {
    super('value needs the library')
    this.name = 'OutsideClosures'
  }
}
