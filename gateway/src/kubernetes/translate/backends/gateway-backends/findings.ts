import { formatPath, type Path } from '../../../../schema/path.ts'
import type { Lookups } from './lookups.ts'

/** A reference that does not resolve. */
export type BrokenReference = { readonly reason: string; readonly message: string }

/** Problems of a GatewayBackend, found by its translation. */
export type Findings = {
  /** Problems of its own values, in one line each with their paths. */
  readonly mistakes: string[]
  readonly broken: BrokenReference[]
}

/** Access to referenced objects, and the list of problems. */
export type Translation = { readonly lookups: Lookups; readonly findings: Findings }

export function reportMistake({ findings }: Translation, path: Path, message: string): void {
  findings.mistakes.push(`${formatPath(path)}: ${message}`)
}

export function reportBroken(
  { findings }: Translation,
  path: Path,
  { reason, message }: BrokenReference,
): void {
  findings.broken.push({ reason, message: `${formatPath(path)}: ${message}` })
}

/** Runs a translation of a part. The part is not usable if one of its references is broken. */
export function translatePart<T>(
  { findings }: Translation,
  translate: () => T,
): { readonly value: T; readonly isUsable: boolean } {
  const before = findings.broken.length
  const value = translate()
  return { value, isUsable: findings.broken.length === before }
}
