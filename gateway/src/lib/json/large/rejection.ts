import type { JsonTextProblem } from '../text.ts'

/** Thrown to end a read with a problem of the text. */
export class RejectedJson extends Error {
  readonly problem: JsonTextProblem
  constructor(problem: JsonTextProblem) {
    super(problem.kind)
    this.problem = problem
  }
}

export function invalid(message: string): RejectedJson {
  return new RejectedJson({ kind: 'invalid', message })
}

export function malformed(): RejectedJson {
  return invalid('not valid JSON')
}

export function duplicate(path: string): RejectedJson {
  return new RejectedJson({ kind: 'duplicate', path })
}
