import * as z from 'zod'
import { parseHostPort } from '../lib/address/host-port.ts'
import { parseSocketPath } from '../lib/address/socket-path.ts'
import { parseDuration } from '../lib/duration.ts'

/** Schema of a configurable value. Schemas contain no transforms: the stored JSON equals the user's input. */
export type Schema<T = unknown> = z.ZodType<T>
export type Infer<S extends Schema> = z.infer<S>

/**
 * Metadata of a field for documentation, JSON Schema and forms. `default` is documentation only; it is never
 * inserted.
 */
export type FieldMeta = {
  doc: string
  example?: unknown
  /** Common values, as further examples of the JSON Schema. Others are valid. */
  suggestions?: readonly string[]
  default?: unknown
  /** Masked in every output of the configuration. */
  secret?: boolean
  /** Listed after the common fields. */
  advanced?: boolean
  format?: Format
  /** Expected content of the text or of the file that it names, checked when a file is loaded. */
  holds?: FileContent
  /**
   * The value of the CEL expression is sent to a backend or service: it may contain credentials of the
   * client.
   */
  reveals?: boolean
  /** Prefix of every message about this value, for programs that match messages. */
  mismatch?: string
}

/** Formats of strings and numbers. Messages describe the expected format. */
export type Format = 'duration' | 'host:port' | 'service address' | 'cel' | 'url' | 'port' | 'file'

/**
 * PEM certificates, a PEM private key without a passphrase, a credential on one line, a JSON Web Key Set,
 * users with password hashes.
 */
export type FileContent = 'certificates' | 'privateKey' | 'credential' | 'keySet' | 'htpasswd'

/** String; `max` bounds its length. */
export function string(meta: FieldMeta, size: { max?: number } = {}): Schema<string> {
  return (size.max === undefined ? z.string() : z.string().max(size.max)).meta({ ...meta, ...size })
}

/** Non-empty string; `max` bounds its length. */
export function name(meta: FieldMeta, size: { max?: number } = {}): Schema<string> {
  const text = z.string().min(1)
  return (size.max === undefined ? text : text.max(size.max)).meta({ ...meta, min: 1, ...size })
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

/** TCP port; 0 selects a free port. */
export function port(meta: FieldMeta): Schema<number> {
  return integer({ ...meta, format: 'port' }, { min: 0, max: 65_535 })
}

/**
 * Time span such as `500ms`, `10s` or `1h30m`, stored as a string; `parseDuration` converts it when
 * compiling.
 */
export function duration(meta: FieldMeta): Schema<string> {
  return formatted('duration', (text) => parseDuration(text) !== undefined, meta)
}

/** `host:port`, also `[::]:15020`, stored as a string; `parseHostPort` parses it when compiling. */
export function hostPort(meta: FieldMeta): Schema<string> {
  return formatted('host:port', (text) => parseHostPort(text) !== undefined, meta)
}

/** `host:port`, or `unix:/path` of a Unix domain socket. */
export function serviceAddress(meta: FieldMeta): Schema<string> {
  return formatted(
    'service address',
    (text) => (parseHostPort(text) ?? parseSocketPath(text)) !== undefined,
    meta,
  )
}

/** Absolute `http:` or `https:` URL. */
export function url(meta: FieldMeta): Schema<string> {
  return formatted('url', isHttpUrl, meta)
}

/** File path. Messages omit values that cannot be paths, such as PEM text. */
export function filePath(meta: FieldMeta): Schema<string> {
  return formatted('file', isFilePath, meta)
}

/** CEL expression. Its syntax and its variables (`roots`) are checked after the whole file is read. */
export function cel(meta: FieldMeta, roots?: readonly string[]): Schema<string> {
  return z.string().meta({ ...meta, format: 'cel', ...(roots === undefined ? {} : { roots }) })
}

/** String that messages, logs and pages never contain. */
export function secret(meta: FieldMeta): Schema<string> {
  return string({ ...meta, secret: true })
}

/** Inline secret, or a file that contains it. */
export type SecretSource = string | { file: string }

/** Secret as a string or as `{file: path}`; the file is read and trimmed when compiling. */
export function secretSource(meta: FieldMeta): Schema<SecretSource> {
  const file = object(
    { file: filePath({ doc: 'Path of a file that contains the secret.', holds: 'credential' }) },
    { doc: 'Secret in a file.' },
  )
  return anyOfShapes([secret({ doc: 'Inline secret.' }), file], { ...meta, secret: true })
}

/** PEM text: the path of a file, or the text itself as `{inline: text}`. */
export type PemSource = string | { inline: string }

/** PEM text in a file or inline; `readPem` returns it when compiling. Inline keys are secrets. */
export function pemSource({ holds, ...meta }: FieldMeta & { holds: FileContent }): Schema<PemSource> {
  const text = holds === 'privateKey' ? secret : string
  const inline = object(
    { inline: text({ doc: 'PEM text.', holds, example: '$TLS_PEM' }) },
    { doc: 'PEM text in the configuration, or in an environment variable that it names.' },
  )
  return anyOfShapes([filePath({ doc: 'Path of a file.', holds }), inline], meta)
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

/** JSON object of any shape, not validated. */
export function jsonObject(meta: FieldMeta): Schema<Record<string, unknown>> {
  return z.record(z.string(), z.unknown()).meta(meta)
}

type Shape = Record<string, Schema>
type OptionalKeys<S extends Shape> = { [K in keyof S]: undefined extends Infer<S[K]> ? K : never }[keyof S]
type ObjectOf<S extends Shape> = { [K in Exclude<keyof S, OptionalKeys<S>>]: Infer<S[K]> } & {
  [K in OptionalKeys<S>]?: Infer<S[K]>
}

/** Optional field. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined> {
  return schema.optional() as Schema<T | undefined>
}

/** Object with a fixed set of fields; unknown fields are errors. */
export function object<S extends Shape>(shape: S, meta: FieldMeta): Schema<ObjectOf<S>> {
  return z.strictObject(shape).meta(meta) as unknown as Schema<ObjectOf<S>>
}

/** Object with these fields and any others, which are not validated. */
export function openObject<S extends Shape>(shape: S, meta: FieldMeta): Schema<ObjectOf<S>> {
  return z.looseObject(shape).meta(meta) as unknown as Schema<ObjectOf<S>>
}

type ExactlyOneOf<V extends Shape, C extends Shape> = {
  [K in keyof V]: ObjectOf<C> & { [P in K]: Exclude<Infer<V[P]>, undefined> } & {
    [P in Exclude<keyof V, K>]?: undefined
  }
}[keyof V]

/**
 * Object with exactly one of the keys of `variants` and any of the `common` fields. Narrow with
 * `config.key !== undefined`. Every choice of the configuration has this form.
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
 * Union of shapes, for the rare choice that cannot be `exactlyOne`. Mistakes are reported against the closest
 * shape.
 */
export function anyOfShapes<const S extends readonly [Schema, Schema, ...Schema[]]>(
  shapes: S,
  meta: FieldMeta,
): Schema<Infer<S[number]>> {
  return z.union(shapes).meta(meta) as unknown as Schema<Infer<S[number]>>
}

/** The schema of an object, or of each alternative of a union of objects, with further fields. */
export function withFields<T extends object, S extends Shape>(
  schema: Schema<T>,
  fields: S,
): Schema<T & ObjectOf<S>>
export function withFields(schema: Schema, fields: Shape): Schema {
  const meta = (schema.meta() ?? { doc: '' }) as FieldMeta & { exactlyOne?: readonly string[] }
  if (schema instanceof z.ZodUnion) {
    const options = schema.options.map((option) => withFields(option as Schema<object>, fields))
    return z.union(options).meta(meta)
  }
  if (!(schema instanceof z.ZodObject)) throw new Error('fields can be added to objects only')
  const extended = z.strictObject({ ...schema.shape, ...fields })
  const { exactlyOne: keys } = meta
  if (keys === undefined) return extended.meta(meta)
  return extended.refine((value) => presentKeys(value, keys).length === 1).meta(meta)
}

function formatted(format: Format, accepts: (text: string) => boolean, meta: FieldMeta): Schema<string> {
  return z
    .string()
    .refine(accepts, { params: { format } })
    .meta({ ...meta, format })
}

/** Whether a text is an absolute `http:` or `https:` URL. */
export function isHttpUrl(text: string): boolean {
  const parsed = URL.parse(text)
  return parsed !== null && (parsed.protocol === 'http:' || parsed.protocol === 'https:')
}

/**
 * Linux limits paths to 4096 bytes. Paths with control characters are rejected: they are likely file
 * contents.
 */
const maxPathLength = 4096

function isFilePath(text: string): boolean {
  return text !== '' && text.length <= maxPathLength && !/\p{Cc}|-----BEGIN/u.test(text)
}

/** Returns those of `keys` that the object has with a value other than `undefined`. */
export function presentKeys(value: object, keys: readonly string[]): string[] {
  return Object.entries(value).flatMap(([key, entry]) =>
    keys.includes(key) && entry !== undefined ? [key] : [],
  )
}
