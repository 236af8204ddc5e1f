import { isToken } from '../../../../lib/http-token.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import {
  createSchemaBudget,
  createSchemaConverter,
  type SchemaBudget,
  type SchemaConverter,
} from './json-schema.ts'
import { DocumentError, type DocumentPath, resolveReference } from './reference.ts'

/** Position of a parameter, which determines its encoding. */
export type Position = 'path' | 'query' | 'header'

export type Parameter = {
  readonly name: string
  readonly in: Position
  readonly required: boolean
  /** `json` for parameters with a media type. */
  readonly style: 'simple' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject' | 'json'
  readonly explode: boolean
}

export type RequestBody = {
  readonly required: boolean
  readonly mediaType: string
  /** `base64`: the argument is base64 text of the bytes. */
  readonly form: 'json' | 'base64' | 'text' | 'urlencoded'
}

/** Operation of the API. */
export type Operation = {
  readonly name: string
  readonly method: string
  /** With `{parameters}` in braces. */
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: RequestBody | undefined
  /** Entry in `tools/list`. */
  readonly tool: JsonObject
}

export type ApiDocument = {
  readonly title: string
  readonly version: string
  /** Path prefix of the operations, from the first server of the document; empty or with a leading slash. */
  readonly serverPath: string
  readonly operations: ReadonlyMap<string, Operation>
  /** Skipped operations with the reason. */
  readonly skipped: readonly string[]
}

export type ReadDocument =
  | { kind: 'document'; document: ApiDocument }
  | { kind: 'mistakes'; mistakes: { place: DocumentPath; message: string }[] }

const maxOperations = 2000
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const
/** Ignored header parameters: defined elsewhere (OpenAPI 3.1 section 4.8.12), or part of the connection. */
const ignoredHeaders = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const maxTitleLength = 64
const maxNameLength = 128

/** Reads an OpenAPI 3.0 or 3.1 document and reports every error of its operations. */
export function readApiDocument(value: unknown): ReadDocument {
  const mistakes: { place: DocumentPath; message: string }[] = []
  const problem = kindProblem(value)
  if (problem !== undefined || !isJsonObject(value)) {
    return { kind: 'mistakes', mistakes: [{ place: [], message: problem ?? 'must be an object' }] }
  }
  const operations = new Map<string, Operation>()
  const leftOut: string[] = []
  const budget = createSchemaBudget()
  for (const found of operationsOf(value, mistakes)) {
    try {
      const operation = readOperation(value, found, budget)
      if (typeof operation === 'string') {
        leftOut.push(operation)
        continue
      }
      const { name } = operation
      if (operations.has(name)) {
        throw new DocumentError(found.place, `operation name "${name}" is not unique: set operationId`)
      }
      if (operations.size >= maxOperations) {
        throw new DocumentError(['paths'], `more than ${maxOperations} operations`)
      }
      operations.set(name, operation)
    } catch (error) {
      mistakes.push(mistakeOf(error))
      if (operations.size >= maxOperations) break
    }
  }
  if (mistakes.length > 0) return { kind: 'mistakes', mistakes }
  const info = isJsonObject(value['info']) ? value['info'] : {}
  const document: ApiDocument = {
    title: textOf(info['title']) ?? 'OpenAPI',
    version: textOf(info['version']) ?? (typeof info['version'] === 'number' ? String(info['version']) : ''),
    serverPath: serverPathOf(value['servers']),
    operations,
    skipped: leftOut,
  }
  return { kind: 'document', document }
}

function kindProblem(value: unknown): string | undefined {
  if (!isJsonObject(value)) return 'an OpenAPI document must be an object'
  const { openapi } = value
  if (value['swagger'] !== undefined) return 'Swagger 2.0 is not supported; convert the document to OpenAPI 3'
  // YAML parses an unquoted 3.1 as a number, and 3.0 as 3.
  if (!/^3(?:\.[01](?:\.|$)|$)/.test(String(openapi))) {
    return 'openapi must be a version of OpenAPI 3.0 or 3.1'
  }
  return isJsonObject(value['paths']) ? undefined : 'paths must be an object'
}

function mistakeOf(error: unknown): { place: DocumentPath; message: string } {
  if (error instanceof DocumentError) return { place: error.path, message: error.message }
  throw error
}

type OperationEntry = {
  path: string
  method: string
  item: JsonObject
  place: DocumentPath
  operation: JsonObject
}

function operationsOf(
  document: JsonObject,
  mistakes: { place: DocumentPath; message: string }[],
): OperationEntry[] {
  const { paths } = document
  const found: OperationEntry[] = []
  for (const [path, pathItem] of Object.entries(isJsonObject(paths) ? paths : {})) {
    if (path.startsWith('x-')) continue
    const place = ['paths', path]
    try {
      if (!/^\/[^\s?#\\]*$/.test(path)) {
        throw new DocumentError(place, 'path must start with a slash and must not contain blanks, ? or #')
      }
      const item = resolveReference(document, pathItem, place)
      for (const method of methods) {
        if (item[method] === undefined) continue
        const at = [...place, method]
        found.push({ path, method, item, place: at, operation: resolveReference(document, item[method], at) })
      }
    } catch (error) {
      mistakes.push(mistakeOf(error))
    }
  }
  return found
}

/** The operation, or the reason for its omission. */
function readOperation(
  document: JsonObject,
  found: OperationEntry,
  budget: SchemaBudget,
): Operation | string {
  const { path, method, item, place, operation } = found
  const converter = createSchemaConverter(document, budget)
  const described = parametersOf(document, item, place, operation, converter)
  const body = bodyOf(document, operation['requestBody'], [...place, 'requestBody'], converter)
  if (body?.kind === 'unsupported') {
    return `${method.toUpperCase()} ${path}: no supported media type among ${body.mediaTypes.join(', ')}`
  }
  for (const [, parameter = ''] of path.matchAll(/\{([^}]*)\}/g)) {
    if (!described.some(({ is }) => is.in === 'path' && is.name === parameter)) {
      throw new DocumentError(place, `the path parameter "${parameter}" is not described`)
    }
  }
  const name = nameOf(operation, method, path)
  return {
    name,
    method: method.toUpperCase(),
    path,
    parameters: described.map(({ is }) => is),
    body: body?.is,
    tool: toolOf(name, method, operation, inputSchemaOf(described, body)),
  }
}

/** Tool name with permitted characters only (MCP 2025-11-25, Tools, tool names). */
function nameOf(operation: JsonObject, method: string, path: string): string {
  const id =
    textOf(operation['operationId']) ?? `${method}_${path.replaceAll(/[{}]/g, '').replace(/^\//, '')}`
  return id
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replace(/_+$/, '')
    .slice(0, maxNameLength)
}

function toolOf(name: string, method: string, operation: JsonObject, inputSchema: JsonObject): JsonObject {
  const summary = textOf(operation['summary'])
  const readOnly = method === 'get' || method === 'head' || method === 'options'
  return {
    name,
    ...(summary === undefined ? {} : { title: summary.slice(0, maxTitleLength) }),
    description: textOf(operation['description']) ?? summary ?? name,
    inputSchema,
    annotations: readOnly
      ? { readOnlyHint: true }
      : {
          readOnlyHint: false,
          destructiveHint: method === 'delete' || method === 'put' || method === 'patch',
          idempotentHint: method === 'put' || method === 'delete',
        },
  }
}

type DescribedParameter = { is: Parameter; schema: JsonObject }

function parametersOf(
  document: JsonObject,
  item: JsonObject,
  place: DocumentPath,
  operation: JsonObject,
  converter: SchemaConverter,
): DescribedParameter[] {
  // Parameters of the operation override those of the path.
  const byKey = new Map<string, DescribedParameter>()
  const lists: [JsonValue | undefined, DocumentPath][] = [
    [item['parameters'], [...place.slice(0, -1), 'parameters']],
    [operation['parameters'], [...place, 'parameters']],
  ]
  for (const [list, at] of lists) {
    if (list === undefined) continue
    if (!Array.isArray(list)) throw new DocumentError(at, 'must be a list')
    for (const [index, entry] of list.entries()) {
      const described = parameterOf(document, entry, [...at, index], converter)
      if (described) byKey.set(`${described.is.in} ${described.is.name}`, described)
    }
  }
  return [...byKey.values()]
}

/** Reads a parameter; undefined for connection headers, and for cookies, which tools cannot set. */
function parameterOf(
  document: JsonObject,
  entry: JsonValue,
  place: DocumentPath,
  converter: SchemaConverter,
): DescribedParameter | undefined {
  const parameter = resolveReference(document, entry, place)
  const name = textOf(parameter['name'])
  const position = parameter['in']
  if (name === undefined) throw new DocumentError(place, 'name must be text')
  if (position === 'cookie') return undefined
  if (position !== 'path' && position !== 'query' && position !== 'header') {
    throw new DocumentError(place, 'in must be path, query, header or cookie')
  }
  if (position === 'header') {
    if (!isToken(name)) {
      throw new DocumentError(place, `"${name}" cannot be the name of a header`)
    }
    if (ignoredHeaders.has(name.toLowerCase())) return undefined
  }
  const { content } = parameter
  const [media] = isJsonObject(content) ? Object.values(content) : []
  const schema = isJsonObject(media) ? media['schema'] : parameter['schema']
  const { description } = parameter
  const converted = converter(schema, [...place, 'schema'])
  const is: Parameter = {
    name,
    in: position,
    required: position === 'path' || parameter['required'] === true,
    ...styleOf(parameter, position, place),
  }
  return { is, schema: typeof description === 'string' ? { description, ...converted } : converted }
}

function styleOf(
  parameter: JsonObject,
  position: Position,
  place: DocumentPath,
): Pick<Parameter, 'style' | 'explode'> {
  if (isJsonObject(parameter['content'])) return { style: 'json', explode: false }
  const style = parameter['style'] ?? (position === 'query' ? 'form' : 'simple')
  const explode = typeof parameter['explode'] === 'boolean' ? parameter['explode'] : style === 'form'
  if (position !== 'query') {
    if (style === 'simple') return { style, explode }
  } else if (
    style === 'form' ||
    style === 'spaceDelimited' ||
    style === 'pipeDelimited' ||
    style === 'deepObject'
  ) {
    return { style, explode }
  }
  throw new DocumentError(place, `style ${JSON.stringify(style)} is not supported in a ${position}`)
}

type DescribedBody = { kind: 'body'; is: RequestBody; schema: JsonObject }

function bodyOf(
  document: JsonObject,
  value: JsonValue | undefined,
  place: DocumentPath,
  converter: SchemaConverter,
): DescribedBody | { kind: 'unsupported'; mediaTypes: string[] } | undefined {
  if (value === undefined) return undefined
  const requestBody = resolveReference(document, value, place)
  const content = requestBody['content']
  if (!isJsonObject(content)) throw new DocumentError(place, 'content must be an object')
  const mediaTypes = Object.keys(content)
  const best = bodyForms
    .map(({ form, accepts }) => ({ form, mediaType: mediaTypes.find((type) => accepts.test(type)) }))
    .find(({ mediaType }) => mediaType !== undefined)
  if (best?.mediaType === undefined) return { kind: 'unsupported', mediaTypes }
  const { form, mediaType } = best
  const media = content[mediaType]
  const schema = converter(isJsonObject(media) ? media['schema'] : undefined, [
    ...place,
    'content',
    mediaType,
  ])
  return {
    kind: 'body',
    is: { required: requestBody['required'] === true, mediaType, form },
    schema: form === 'base64' ? { type: 'string', contentEncoding: 'base64' } : schema,
  }
}

/** Body forms in order of preference. */
const bodyForms: readonly { form: RequestBody['form']; accepts: RegExp }[] = [
  { form: 'json', accepts: /^application\/(?:[a-z0-9.+-]+\+)?json(?:;|$)/i },
  { form: 'urlencoded', accepts: /^application\/x-www-form-urlencoded(?:;|$)/i },
  { form: 'text', accepts: /^text\/[a-z0-9.+-]+(?:;|$)/i },
  { form: 'base64', accepts: /^application\/octet-stream$/i },
]

/** Input schema with one property per position, so that equal parameter names do not collide. */
function inputSchemaOf(
  parameters: readonly DescribedParameter[],
  body: DescribedBody | undefined,
): JsonObject {
  const properties: JsonObject = {}
  const required: string[] = []
  for (const position of ['path', 'query', 'header'] as const) {
    const here = parameters.filter(({ is }) => is.in === position)
    if (here.length === 0) continue
    const needed = here.filter(({ is }) => is.required).map(({ is }) => is.name)
    properties[position] = {
      type: 'object',
      properties: Object.fromEntries(here.map(({ is, schema }) => [is.name, schema])),
      ...(needed.length > 0 ? { required: needed } : {}),
      additionalProperties: false,
    }
    if (needed.length > 0) required.push(position)
  }
  if (body) {
    properties['body'] = body.schema
    if (body.is.required) required.push('body')
  }
  return {
    type: 'object',
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  }
}

/** Path of the first server; its host is configured in the gateway. */
function serverPathOf(servers: JsonValue | undefined): string {
  const [server] = Array.isArray(servers) ? servers : []
  if (!isJsonObject(server) || typeof server['url'] !== 'string') return ''
  const { variables } = server
  const url = server['url'].replaceAll(/\{([^}]*)\}/g, (_, name: string) => {
    const variable = isJsonObject(variables) && Object.hasOwn(variables, name) ? variables[name] : undefined
    return isJsonObject(variable) ? (textOf(variable['default']) ?? '') : ''
  })
  const path = URL.parse(url, 'http://server.invalid')?.pathname ?? ''
  return path.replace(/\/+$/, '')
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
