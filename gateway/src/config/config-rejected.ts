import { messageOf } from '../lib/thrown.ts'

/** A configuration that cannot be applied; each issue is a line of text with a reason. */
export class ConfigRejected extends Error {
  readonly issues: readonly string[]

  constructor(issues: readonly string[]) {
    super(issues.join('\n'))
    this.name = 'ConfigRejected'
    this.issues = issues
  }
}

/** The reasons of any error, as lines of text. */
export function reasonsOf(error: unknown): readonly string[] {
  if (error instanceof ConfigRejected) return error.issues
  return [messageOf(error)]
}
