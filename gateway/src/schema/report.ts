import type { Path } from './path.ts'

/** Reports one issue of a configuration, with the path of the field within the checked value. */
export type ReportIssue = (path: Path, message: string) => void
