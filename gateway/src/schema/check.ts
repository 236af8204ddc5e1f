import type * as z from 'zod'
import { nearest } from '../lib/nearest.ts'
import { presentKeys, type Schema } from './dsl.ts'
import { type Path, valueAt } from './path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from './shape.ts'
import { describeValue, expectedFormat, expectedShape } from './wording.ts'

/** Violation of a schema, with a message for the author of the value. */
export type Mistake = {
  path: Path
  /** Location of the mistake: the key at `path`, or its value. */
  part: 'key' | 'value'
  message: string
  /** Proposed correction: the nearest known key or value. */
  suggestion?: string
}

export type Checked<T> = { kind: 'valid'; value: T } | { kind: 'mistakes'; mistakes: Mistake[] }

/** Whether a message may contain the value at a path. Values of secret fields are always omitted. */
export type IsShowable = (path: Path) => boolean

/** Validates a value against a schema. Returns all mistakes, in the order of the schema. */
export function check<T>(schema: Schema<T>, value: unknown, mayShow: IsShowable = () => true): Checked<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return { kind: 'valid', value: parsed.data }
  const subject = { root: shapeOf(schema), value, mayShow }
  const issues = parsed.error.issues.flatMap((issue) => flattenIssue(issue, []))
  const mistakes = issues.flatMap((issue) => mistakesOf(issue, subject))
  const found = [...mistakes, ...choiceMistakes(issues, subject)]
  return { kind: 'mistakes', mistakes: found.map((mistake) => withMismatchText(mistake, subject.root)) }
}

type Subject = { root: Shape; value: unknown; mayShow: IsShowable }
/** Issue of the schema library with a path from the root and resolved unions. */
type Issue = { path: Path; detail: z.core.$ZodIssue; expected: readonly Shape[] | undefined }

/** Replaces the issue "no alternative matches" by the issues of the closest alternative. */
function flattenIssue(detail: z.core.$ZodIssue, base: Path): Issue[] {
  const path = [...base, ...detail.path.map(stepOf)]
  if (detail.code !== 'invalid_union') return [{ path, detail, expected: undefined }]
  const branches = detail.errors.filter((branch) => !branch.some(isWrongKind))
  const [closest] = branches.toSorted((one, other) => distance(one) - distance(other))
  if (closest === undefined) return [{ path, detail, expected: undefined }]
  return closest.flatMap((issue) => flattenIssue(issue, path))
}

function isWrongKind(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value')
}

/**
 * Number of issues of an alternative. Unknown keys count twice: they are stronger evidence than wrong values.
 */
function distance(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce(
    (sum, issue) => sum + (issue.code === 'unrecognized_keys' ? 2 * issue.keys.length : 1),
    0,
  )
}

function mistakesOf({ path, detail }: Issue, subject: Subject): Mistake[] {
  const shapes = shapesAt(subject.root, path)
  if (detail.code === 'unrecognized_keys') {
    const known = knownKeys(shapes, valueAt(subject.value, path))
    return detail.keys.map((key) => unknownKey([...path, key], known))
  }
  const value = valueAt(subject.value, path)
  // The only rule of objects is `exactlyOne`, which `choiceMistakes` reports.
  if (detail.code === 'custom' && typeof value === 'object') return []
  if (value === undefined) return [missing(path, shapes)]
  return [{ path, part: 'value', ...wrongValue(detail, shapes, value, isShowable(subject, path, shapes)) }]
}

/** Prefixes the message with the text that programs match; see `FieldMeta.mismatch`. */
function withMismatchText(mistake: Mistake, root: Shape): Mistake {
  for (let length = mistake.path.length; length > 0; length--) {
    const shapes = shapesAt(root, mistake.path.slice(0, length))
    const words = shapes.find((shape) => shape.meta.mismatch !== undefined)?.meta.mismatch
    if (words !== undefined) return { ...mistake, message: `${words}: ${mistake.message}` }
  }
  return mistake
}

function missing(path: Path, shapes: readonly Shape[]): Mistake {
  return { path, part: 'value', message: `is required: ${expectedShape(shapes)}` }
}

function unknownKey(path: Path, known: readonly string[]): Mistake {
  const key = String(path.at(-1))
  const suggestion = nearest(key, known)
  if (suggestion !== undefined) {
    return {
      path,
      part: 'key',
      message: `unknown key \`${key}\`, did you mean \`${suggestion}\`?`,
      suggestion,
    }
  }
  const list = known.length === 0 || known.length > 30 ? '' : `; known here: ${known.join(', ')}`
  return { path, part: 'key', message: `unknown key \`${key}\`${list}` }
}

/** Valid keys of an object; of several alternatives, the keys of those most similar to the object. */
function knownKeys(shapes: readonly Shape[], value: unknown): string[] {
  const objects = shapes.flatMap((shape) => (shape.kind === 'object' ? [[...shape.fields.keys()]] : []))
  if (typeof value !== 'object' || value === null) return [...new Set(objects.flat())]
  const resemblance = (keys: readonly string[]) => keys.filter((key) => key in value).length
  const most = Math.max(0, ...objects.map(resemblance))
  return [...new Set(objects.filter((keys) => resemblance(keys) === most).flat())]
}

function wrongValue(
  detail: z.core.$ZodIssue,
  shapes: readonly Shape[],
  value: unknown,
  visible: boolean,
): { message: string; suggestion?: string } {
  const got = describeValue(value, visible)
  switch (detail.code) {
    case 'too_small':
      return { message: tooSmall(detail, got) }
    case 'too_big':
      return { message: `expected at most ${tooBig(detail, got)}` }
    case 'custom':
      return { message: `expected ${expectedFormat(shapes)}, got ${got}${inlineAdvice(shapes, value)}` }
    default:
      return wrongKind(shapes, value, got)
  }
}

/** PEM text in place of its file name, or of the object that contains it. */
function inlineAdvice(shapes: readonly Shape[], value: unknown): string {
  const takesInline = shapes.some((shape) => shape.kind === 'object' && shape.fields.has('inline'))
  return takesInline && typeof value === 'string' && value.includes('-----BEGIN')
    ? ': write PEM text as {inline: …}'
    : ''
}

function tooSmall(detail: z.core.$ZodIssueTooSmall, got: string): string {
  if (detail.origin === 'string') return 'must not be empty'
  if (detail.origin !== 'array') return `expected at least ${detail.minimum}, got ${got}`
  return detail.minimum === 1 ? 'must not be empty' : `expected at least ${detail.minimum} items`
}

function tooBig({ origin, maximum }: z.core.$ZodIssueTooBig, got: string): string {
  if (origin === 'array') return `${maximum} items`
  return origin === 'string' ? `${maximum} characters` : `${maximum}, got ${got}`
}

function wrongKind(
  shapes: readonly Shape[],
  value: unknown,
  got: string,
): { message: string; suggestion?: string } {
  const message = `expected ${expectedShape(shapes)}, got ${got}`
  if (typeof value !== 'string') {
    const quotable = shapes.some((shape) => shape.kind === 'string') && typeof value !== 'object'
    return { message: quotable ? `${message}; put it in quotes` : message }
  }
  const options = shapes.flatMap((shape) => (shape.kind === 'enumeration' ? shape.values : []))
  const suggestion = nearest(value, options)
  return suggestion === undefined
    ? { message }
    : { message: `${message}, did you mean ${suggestion}?`, suggestion }
}

/**
 * Checks `exactlyOne` on every object with a mistake, because the schema library skips it after other issues.
 */
function choiceMistakes(issues: readonly Issue[], subject: Subject): Mistake[] {
  const objects = new Map<string, Path>()
  for (const { path } of issues) {
    for (let length = 0; length <= path.length; length++) {
      const prefix = path.slice(0, length)
      objects.set(JSON.stringify(prefix), prefix)
    }
  }
  return [...objects.values()].flatMap((path) => choiceMistake(path, subject))
}

function choiceMistake(path: Path, subject: Subject): Mistake[] {
  const value = valueAt(subject.value, path)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  const shapes = shapesAt(subject.root, path).filter((shape) => shape.kind === 'object')
  // Of several alternatives only the most similar one is reported; see `knownKeys`.
  const known = new Set(knownKeys(shapes, value))
  for (const shape of shapes) {
    if (shape.exactlyOne.length === 0 || !shape.exactlyOne.every((key) => known.has(key))) continue
    const found = presentKeys(value, shape.exactlyOne)
    if (found.length === 1) return []
    const rule = `exactly one of ${shape.exactlyOne.join(', ')} is ${found.length === 0 ? 'required' : 'allowed'} here`
    return [{ path, part: 'value', message: `${rule}; found ${foundWords(found)}` }]
  }
  return []
}

function foundWords(found: readonly string[]): string {
  if (found.length === 0) return 'none'
  return found.length === 2 ? `both ${found.join(' and ')}` : found.join(', ')
}

/**
 * Whether a message may contain a value: only scalars of scalar fields. A text in place of an object may be a
 * secret.
 */
function isShowable({ root, mayShow }: Subject, path: Path, shapes: readonly Shape[]): boolean {
  if (!mayShow(path) || shapes.length === 0) return false
  if (
    path.some((_, index) =>
      shapesAt(root, path.slice(0, index + 1)).some((shape) => shape.meta.secret === true),
    )
  ) {
    return false
  }
  // A file's content in place of its path may be a private key.
  if (shapes.some((shape) => shape.meta.format === 'file')) return false
  return shapes.every((shape) => shape.kind !== 'object' && shape.kind !== 'map' && shape.kind !== 'list')
}

function shapesAt(root: Shape, path: Path): Shape[] {
  let shapes = alternativesOf(root)
  for (const step of path) shapes = childShapes(shapes, step)
  return shapes
}

function stepOf(step: PropertyKey): string | number {
  return typeof step === 'number' ? step : String(step)
}
