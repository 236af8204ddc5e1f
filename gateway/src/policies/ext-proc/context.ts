import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { evaluateToWrite } from '../../cel/results.ts'
import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import type { Facts } from '../../pipeline/exchange.ts'
import { type ExtProcConfig, initialMetadataNamespace } from './config.ts'

/** Expressions of one namespace. */
type Programs = readonly (readonly [name: string, program: CelProgram])[]

/** Namespace of attributes, fixed by the protocol. */
const attributesNamespace = 'envoy.filters.http.ext_proc'

/** Values beside the messages, computed from facts. */
export type ProcessorContext = {
  /** `metadata_context`, by namespace. */
  metadata(facts: Facts): (readonly [string, JsonObject])[]
  requestAttributes(facts: Facts): (readonly [string, JsonObject])[]
  responseAttributes(facts: Facts): (readonly [string, JsonObject])[]
  /** gRPC metadata of the stream. */
  initialMetadata(facts: Facts): (readonly [string, string])[]
  /** Whether expressions read `response`. */
  readonly readsResponse: boolean
}

export function compileContext(
  { metadataContext = {}, requestAttributes, responseAttributes }: ExtProcConfig,
  variables: { readonly request: ReadonlySet<string>; readonly reply: ReadonlySet<string> },
): ProcessorContext {
  const { [initialMetadataNamespace]: initial, ...others } = metadataContext
  const namespaces = Object.entries(others).map(
    ([name, values]) => [name, compileValues(values, variables.request)] as const,
  )
  const ofRequest = compileValues(requestAttributes, variables.request)
  const ofResponse = compileValues(responseAttributes, variables.reply)
  const ofStream = compileValues(initial, variables.request)
  return {
    metadata: (facts) => namespaces.map(([name, programs]) => [name, valuesOf(programs, facts)]),
    requestAttributes: (facts) => attributesOf(ofRequest, facts),
    responseAttributes: (facts) => attributesOf(ofResponse, facts),
    initialMetadata: (facts) => Object.entries(valuesOf(ofStream, facts)).flatMap(metadataField),
    readsResponse: ofResponse.some(([, { roots }]) => roots.has('response')),
  }
}

function compileValues(
  values: Readonly<Record<string, string>> = {},
  variables: ReadonlySet<string>,
): Programs {
  return Object.entries(values).map(([name, source]) => [name, compileCheckedCel(source, variables)])
}

function attributesOf(programs: Programs, facts: Facts): (readonly [string, JsonObject])[] {
  return programs.length === 0 ? [] : [[attributesNamespace, valuesOf(programs, facts)]]
}

/** Values of expressions; a failed one has none. */
function valuesOf(programs: Programs, facts: Facts): JsonObject {
  const entries: [string, JsonValue][] = []
  for (const [name, program] of programs) {
    const value = evaluate(program, facts)
    if (value !== undefined) entries.push([name, value])
  }
  return Object.fromEntries(entries)
}

function evaluate(program: CelProgram, facts: Facts): JsonValue | undefined {
  try {
    return jsonOf(evaluateToWrite(program, facts))
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

/** The JSON form of a value of an expression (bytes in Base64); undefined if it has none. */
function jsonOf(value: unknown): JsonValue | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map((item) => jsonOf(item) ?? null)
  if (typeof value !== 'object') return undefined
  return Object.fromEntries(Object.entries(value).flatMap(([name, item]) => entryOf(name, jsonOf(item))))
}

function entryOf(name: string, value: JsonValue | undefined): [string, JsonValue][] {
  return value === undefined ? [] : [[name, value]]
}

/** Text that gRPC permits as a value. */
const metadataValue = /^[\x20-\x7e]*$/

/** The field of a value; none if gRPC does not permit it. */
function metadataField([name, value]: [string, JsonValue]): (readonly [string, string])[] {
  if (typeof value === 'object') return []
  const text = String(value)
  return metadataValue.test(text) ? [[name.toLowerCase(), text]] : []
}
