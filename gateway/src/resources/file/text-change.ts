import type { LocatedMistake } from '../../config/config-rejected.ts'
import type { ConfigChange } from './config-changes.ts'
import type { TextAllowances } from './file-restrictions.ts'

/** A requested change of the text of the configuration file. */
export type TextChangeRequest = {
  readonly text: string
  /** Validates the text without writing it. */
  readonly dryRun: boolean
  /** The header `if-match`, as sent. */
  readonly ifMatch: string | undefined
  readonly allowances: TextAllowances
}

/** Result of a change of the text. With mistakes nothing is written. */
export type TextChangeOutcome = {
  readonly kind: 'text'
  readonly mistakes: readonly LocatedMistake[]
  /** Changed parts of the configuration of the file, at most 200; secrets masked. */
  readonly changes: readonly ConfigChange[]
  /** Whether a change takes effect after a restart only. */
  readonly needsRestart: boolean
  /** Revision of the text of the file, after the change if it was written. */
  readonly revision: string
}

export type FoundText = { readonly kind: 'found'; readonly text: string; readonly revision: string }
