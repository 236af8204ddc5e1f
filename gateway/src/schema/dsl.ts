import { z } from 'zod'
import { parseHostPort } from '../lib/address/host-port.ts'
import { parseDuration } from '../lib/duration.ts'

/** The schema language of every configurable kind. Schemas carry no transforms: the stored JSON is what the user wrote. */
export type Schema<T = unknown> = z.ZodType<T>
export type Infer<S extends Schema> = z.infer<S>

/** What documentation, JSON Schema and forms say about a field. `default` documents what leaving it out means; it is never written in. */
export type FieldMeta = {
  doc: string
  example?: unknown
  default?: unknown
  /** Masked wherever the configuration is shown. */
  secret?: boolean
  /** Listed after the common fields. */
  advanced?: boolean
  format?: Format
  /** Content of the file that a path names, checked when a configuration file is loaded. */
  holds?: FileContent
  /** Words that begin every message about a mistake in this value, for programs that look for them. */
  mismatch?: string
}

/** Strings and numbers with a meaning of their own; each has its words for what was expected. */
export type Format = 'duration' | 'host:port' | 'cel' | 'url' | 'port' | 'file'

/** PEM certificates, a PEM private key without a passphrase, a credential on one line, a JSON Web Key Set. */
export type FileContent = 'certificates' | 'privateKey' | 'credential' | 'keySet'

export function string(meta: FieldMeta): Schema<string> {
  return z.string().meta(meta)
}

/** A string that must not be empty. */
export function name(meta: FieldMeta): Schema<string> {
  return z.string().min(1).meta(meta)
}

export function integer(meta: FieldMeta, range: { min?: number; max?: number } = {}): Schema<number> {
  return z
    .int()
    .min(range.min ?? Number.MIN_SAFE_INTEGER)
    .max(range.max ?? Number.MAX_SAFE_INTEGER)
    .meta({ ...meta, ...range })
}

export function number(meta: FieldMeta, range: { min?: number; max?: number } = {}): Schema<number> {
  return z
    .number()
    .min(range.min ?? -Number.MAX_VALUE)
    .max(range.max ?? Number.MAX_VALUE)
    .meta({ ...meta, ...range })
}

/** A TCP port; 0 lets the system choose. */
export function port(meta: FieldMeta): Schema<number> {
  return integer({ ...meta, format: 'port' }, { min: 0, max: 65_535 })
}

/** A time span such as `500ms`, `10s` or `1h30m`. Stays a string; `parseDuration` makes it milliseconds when compiling. */
export function duration(meta: FieldMeta): Schema<string> {
  return formatted('duration', (text) => parseDuration(text) !== undefined, meta)
}

/** `host:port`, also `[::]:15020`. Stays a string; `parseHostPort` takes it apart when compiling. */
export function hostPort(meta: FieldMeta): Schema<string> {
  return formatted('host:port', (text) => parseHostPort(text) !== undefined, meta)
}

/** An absolute `http:` or `https:` address. */
export function url(meta: FieldMeta): Schema<string> {
  return formatted('url', isHttpUrl, meta)
}

/** The path of a file. Text that cannot be one, such as PEM text pasted in its place, is a mistake that is never shown. */
export function filePath(meta: FieldMeta): Schema<string> {
  return formatted('file', isFilePath, meta)
}

/** A CEL expression. Its syntax, and that it names only `roots`, is checked when the whole file is known. */
export function cel(meta: FieldMeta, roots?: readonly string[]): Schema<string> {
  return z.string().meta({ ...meta, format: 'cel', ...(roots === undefined ? {} : { roots }) })
}

/** A string that no message, log or page shows. */
export function secret(meta: FieldMeta): Schema<string> {
  return string({ ...meta, secret: true })
}

/** A secret written in place, or a file that holds it. */
export type SecretSource = string | { file: string }

/** A secret as a string, or `{file: path}`: read, and trimmed, when compiling. */
export function secretSource(meta: FieldMeta): Schema<SecretSource> {
  const file = object(
    { file: filePath({ doc: 'Path of a file that holds the secret.', holds: 'credential' }) },
    { doc: 'The secret is in a file.' },
  )
  return anyOfShapes([secret({ doc: 'The secret itself.' }), file], { ...meta, secret: true })
}

export function boolean(meta: FieldMeta): Schema<boolean> {
  return z.boolean().meta(meta)
}

export function enumeration<const V extends string>(
  values: readonly [V, ...V[]],
  meta: FieldMeta,
): Schema<V> {
  return z.enum(values).meta(meta) as unknown as Schema<V>
}

export function list<T>(
  item: Schema<T>,
  meta: FieldMeta,
  size: { min?: number; max?: number } = {},
): Schema<T[]> {
  const array = z.array(item)
  const atLeast = size.min === undefined ? array : array.min(size.min)
  const bounded = size.max === undefined ? atLeast : atLeast.max(size.max)
  return bounded.meta({ ...meta, ...size })
}

export function map<T>(value: Schema<T>, meta: FieldMeta): Schema<Record<string, T>> {
  return z.record(z.string(), value).meta(meta)
}

/** Any JSON object, passed through as it is. */
export function jsonObject(meta: FieldMeta): Schema<Record<string, unknown>> {
  return z.record(z.string(), z.unknown()).meta(meta)
}

type Shape = Record<string, Schema>
type OptionalKeys<S extends Shape> = { [K in keyof S]: undefined extends Infer<S[K]> ? K : never }[keyof S]
type ObjectOf<S extends Shape> = { [K in Exclude<keyof S, OptionalKeys<S>>]: Infer<S[K]> } & {
  [K in OptionalKeys<S>]?: Infer<S[K]>
}

/** A field that may be left out. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined> {
  return schema.optional() as Schema<T | undefined>
}

/** An object with exactly these fields; unknown ones are errors. */
export function object<S extends Shape>(shape: S, meta: FieldMeta): Schema<ObjectOf<S>> {
  return z.strictObject(shape).meta(meta) as unknown as Schema<ObjectOf<S>>
}

/** An object with these fields and any others, which are passed on as they are. */
export function openObject<S extends Shape>(shape: S, meta: FieldMeta): Schema<ObjectOf<S>> {
  return z.looseObject(shape).meta(meta) as unknown as Schema<ObjectOf<S>>
}

type ExactlyOneOf<V extends Shape, C extends Shape> = {
  [K in keyof V]: ObjectOf<C> & { [P in K]: Exclude<Infer<V[P]>, undefined> } & {
    [P in Exclude<keyof V, K>]?: undefined
  }
}[keyof V]

/**
 * An object with exactly one of the `variants`' keys beside the `common` fields. Narrow with `config.key !== undefined`.
 * The one form every choice in the configuration has, so that its errors and its form are always alike.
 */
export function exactlyOne<V extends Shape, C extends Shape>(
  variants: V,
  common: C,
  meta: FieldMeta,
): Schema<ExactlyOneOf<V, C>> {
  const keys = Object.keys(variants)
  const optionalVariants = Object.fromEntries(keys.map((key) => [key, optional(variants[key] ?? z.never())]))
  return z
    .strictObject({ ...common, ...optionalVariants })
    .refine((value) => presentKeys(value, keys).length === 1)
    .meta({ ...meta, exactlyOne: keys }) as unknown as Schema<ExactlyOneOf<V, C>>
}

/**
 * One of a few different shapes, for the rare choice that cannot be `exactlyOne`.
 * A mistake is reported against the shape that the value is closest to.
 */
export function anyOfShapes<const S extends readonly [Schema, Schema, ...Schema[]]>(
  shapes: S,
  meta: FieldMeta,
): Schema<Infer<S[number]>> {
  return z.union(shapes).meta(meta) as unknown as Schema<Infer<S[number]>>
}

function formatted(format: Format, accepts: (text: string) => boolean, meta: FieldMeta): Schema<string> {
  return z
    .string()
    .refine(accepts, { params: { format } })
    .meta({ ...meta, format })
}

function isHttpUrl(text: string): boolean {
  const parsed = URL.parse(text)
  return parsed !== null && (parsed.protocol === 'http:' || parsed.protocol === 'https:')
}

/** Linux limits paths to 4096 bytes. A path may have any character but NUL; control characters are content, not names. */
const maxPathLength = 4096

function isFilePath(text: string): boolean {
  return text !== '' && text.length <= maxPathLength && !/\p{Cc}|-----BEGIN/u.test(text)
}

/** Which of `keys` the object holds; a key that says `undefined` counts as left out. */
export function presentKeys(value: object, keys: readonly string[]): string[] {
  return Object.entries(value).flatMap(([key, entry]) =>
    keys.includes(key) && entry !== undefined ? [key] : [],
  )
}
