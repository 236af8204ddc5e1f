import { printable } from '../../schema/printable.ts'
import type { Manifests } from '../objects/manifests/manifests.ts'
import { type CheckedCondition, type CheckedObject, isViolated, mistakesOf } from './check.ts'

/** Result of a check of manifests. */
export type CheckReport = Pick<Manifests, 'errors' | 'warnings'> & {
  readonly objects: readonly CheckedObject[]
}

/** Whether every file parses, and every object is accepted and attached. */
export function isAccepted({ errors, objects }: CheckReport): boolean {
  return (
    errors.length === 0 && objects.every(({ outcome }) => outcome === 'accepted' || outcome === 'foreign')
  )
}

/** Renders a report for people: one line for each object, followed by its conditions. */
export function reportText(report: CheckReport): string {
  const { errors, warnings, objects } = report
  const lines = [
    ...errors.map(({ file, line, message }) => printable(`error ${file}:${line}: ${message}`)),
    ...warnings.map(({ file, line, message }) => printable(`warning ${file}:${line}: ${message}`)),
    ...objects.flatMap(objectLines),
    summary(report),
  ]
  return `${lines.join('\n')}\n`
}

/** Renders a report for programs. */
export function reportJson(report: CheckReport): string {
  const { errors, warnings, objects } = report
  return `${JSON.stringify({ accepted: isAccepted(report), errors, warnings, objects }, null, 2)}\n`
}

const outcomeWords = {
  accepted: 'ok',
  refused: 'refused',
  detached: 'detached',
  foreign: 'foreign',
} as const
const outcomeWidth = 9
const conditionWidth = 20

function objectLines({ kind, key, place, outcome, conditions, mistakes }: CheckedObject): string[] {
  const where = place === undefined ? '' : `  (${printable(place.file)}:${place.line})`
  const indent = ' '.repeat(outcomeWidth)
  const notes = [
    ...mistakesOf({ conditions, mistakes }),
    ...(outcome === 'accepted' ? [] : (explanations[outcome] ?? [])),
  ]
  return [
    `${outcomeWords[outcome].padEnd(outcomeWidth)}${kind} ${key}${where}`,
    ...notes.map((note) => `${indent}  ${printable(note)}`),
    ...conditions.map((condition) => `${indent}${conditionLine(condition)}`),
  ]
}

const explanations: Readonly<Record<Exclude<CheckedObject['outcome'], 'accepted'>, readonly string[]>> = {
  refused: [],
  detached: ['no Gateway of this controller uses it: check parentRefs, targetRefs or gatewayClassName'],
  foreign: ['it belongs to another controller'],
}

function conditionLine(condition: CheckedCondition): string {
  const { of, type, status, reason, message } = condition
  const mark = isViolated(condition) ? '!' : ' '
  const text = `${reason}${message === '' ? '' : `: ${message}`}${of === '' ? '' : ` [${of}]`}`
  return `${mark} ${`${type}=${status}`.padEnd(conditionWidth)} ${printable(text)}`
}

function summary({ errors, warnings, objects }: CheckReport): string {
  const refused = objects.filter(({ outcome }) => outcome === 'refused' || outcome === 'detached').length
  const counts = [
    `objects: ${objects.length}`,
    `not accepted: ${refused}`,
    `errors: ${errors.length}`,
    `warnings: ${warnings.length}`,
  ]
  return counts.join(', ')
}
