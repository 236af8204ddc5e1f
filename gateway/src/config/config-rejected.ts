import { messageOf } from '../lib/thrown.ts'

/** A mistake in a text. Line and column start at 1; both are absent for mistakes without a position. */
export type LocatedMistake = {
  readonly message: string
  readonly line?: number
  readonly column?: number
  /** `llm.models[0].name`; empty for the file as a whole. */
  readonly path: string
}

/** A configuration that cannot be applied; each issue is a line of text with a reason. */
export class ConfigRejected extends Error {
  readonly issues: readonly string[]
  /** The issues with their positions in the text of the file, if they have one. */
  readonly mistakes: readonly LocatedMistake[]

  constructor(issues: readonly string[], mistakes: readonly LocatedMistake[] = []) {
    super(issues.join('\n'))
    this.name = 'ConfigRejected'
    this.issues = issues
    this.mistakes = mistakes
  }
}

/** The mistakes of any error, with positions if they have one. */
export function mistakesOf(error: unknown): readonly LocatedMistake[] {
  if (error instanceof ConfigRejected && error.mistakes.length > 0) return error.mistakes
  return reasonsOf(error).map((message) => ({ message, path: '' }))
}

/** The reasons of any error, as lines of text. */
export function reasonsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigRejected) return error.issues
  return [messageOf(error)]
}
