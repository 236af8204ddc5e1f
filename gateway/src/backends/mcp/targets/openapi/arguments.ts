import { memberText } from '../../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { readJsonObject } from '../../../../lib/json/text.ts'
import type { Headers } from '../../../../net/http/headers.ts'
import type { Operation, Parameter, Position, RequestBody } from './document.ts'

/** HTTP request of a tool call; `path` includes the query. */
export type EncodedCall = {
  kind: 'call'
  path: string
  headers: Headers
  body: string | Uint8Array | undefined
}

/** Invalid arguments, with a message for the model. */
export type InvalidArguments = { kind: 'bad'; message: string }

/** Encodes arguments of a tool call by their position. */
export type EncodeArguments = (argumentsText: string | undefined) => EncodedCall | InvalidArguments

/** Error in the encoding of one argument. */
class InvalidArgumentError extends Error {}

/**
 * Compiles the encoder of an operation's arguments. Values cannot leave their position: they cannot add path
 * segments, parameters, headers or lines. The body is forwarded unchanged.
 */
export function compileArguments(operation: Operation, basePath: string): EncodeArguments {
  const { parameters, body } = operation
  const names: Record<Position, Set<string>> = { path: new Set(), query: new Set(), header: new Set() }
  for (const parameter of parameters) names[parameter.in].add(parameter.name)
  const pathParts = splitTemplate(operation.path)
  const pathParameters = byName(parameters, 'path')
  const queryParameters = parameters.filter((parameter) => parameter.in === 'query')
  const headerParameters = parameters.filter((parameter) => parameter.in === 'header')

  return (argumentsText = '{}') => {
    const json = readJsonObject(argumentsText)
    if (json.kind === 'duplicate') return invalid(`"${json.path}" occurs twice in the arguments`)
    if (json.kind === 'invalid') return invalid(`the arguments are ${json.message}`)
    try {
      for (const key of Object.keys(json.value)) {
        if (!isPosition(key) && !(key === 'body' && body))
          throw new InvalidArgumentError(unknownArgument(key))
      }
      const path = encodePath(pathParts, pathParameters, groupOf(json.value, 'path', names))
      const query = encodeQuery(queryParameters, names.query, groupOf(json.value, 'query', names))
      const headers = encodeHeaders(headerParameters, groupOf(json.value, 'header', names))
      const encodedBody = encodeBody(body, json.value['body'], memberText(json, 'body'))
      if (encodedBody !== undefined && body) headers['content-type'] = body.mediaType
      return { kind: 'call', path: basePath + path + query, headers, body: encodedBody }
    } catch (error) {
      if (error instanceof InvalidArgumentError) return invalid(error.message)
      throw error
    }
  }
}

function invalid(message: string): InvalidArguments {
  return { kind: 'bad', message }
}

function isPosition(key: string): key is Position {
  return key === 'path' || key === 'query' || key === 'header'
}

function unknownArgument(key: string): string {
  return `unknown argument "${key}"; arguments are grouped under path, query, header and body`
}

function byName(parameters: readonly Parameter[], position: Position): Map<string, Parameter> {
  return new Map(
    parameters
      .filter((parameter) => parameter.in === position)
      .map((parameter) => [parameter.name, parameter]),
  )
}

function groupOf(
  args: JsonObject,
  position: Position,
  names: Record<Position, ReadonlySet<string>>,
): JsonObject {
  const group = args[position]
  if (group === undefined || group === null) return {}
  if (!isJsonObject(group)) throw new InvalidArgumentError(`"${position}" must be an object`)
  for (const name of Object.keys(group)) {
    if (!names[position].has(name))
      throw new InvalidArgumentError(`there is no ${position} parameter "${name}"`)
  }
  return group
}

function argumentFor(group: JsonObject, parameter: Parameter): JsonValue | undefined {
  const value = Object.hasOwn(group, parameter.name) ? group[parameter.name] : undefined
  if (value !== undefined && value !== null) return value
  if (parameter.required)
    throw new InvalidArgumentError(`the ${parameter.in} parameter "${parameter.name}" is missing`)
  return undefined
}

/** Alternating texts and parameter names of a path template, starting with a text. */
function splitTemplate(template: string): string[] {
  return template
    .split(/\{([^}]*)\}/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent)))
}

function encodePath(
  parts: readonly string[],
  parameters: ReadonlyMap<string, Parameter>,
  group: JsonObject,
): string {
  let path = ''
  for (const [index, part] of parts.entries()) {
    const parameter = index % 2 === 1 ? parameters.get(part) : undefined
    path += parameter ? encodeInPath(parameter, argumentFor(group, parameter)) : part
  }
  // Adjacent values may form a dot segment, which URL parsers resolve (RFC 3986 section 5.2.4).
  if (path.split('/').some(isDotSegment))
    throw new InvalidArgumentError('the path would contain a . or .. segment')
  return path
}

function encodeInPath(parameter: Parameter, value: JsonValue | undefined): string {
  const text = encodeSimple(parameter, value ?? '', encodePathText(parameter.name))
  if (text === '') throw new InvalidArgumentError(`the path parameter "${parameter.name}" must not be empty`)
  return text
}

/** Escapes slashes. Dot segments are rejected because some servers unescape before normalization. */
function encodePathText(name: string): (text: string) => string {
  return (text) => {
    if (text.split(/[/\\]/).some(isDotSegment) || /[\0-\x1f\x7f]/.test(text)) {
      throw new InvalidArgumentError(
        `the path parameter "${name}" must not contain . or .. segments or control characters`,
      )
    }
    return encodeText(text)
  }
}

function isDotSegment(segment: string): boolean {
  return /^(?:\.|%2e){1,2}$/i.test(segment)
}

function encodeQuery(
  parameters: readonly Parameter[],
  names: ReadonlySet<string>,
  group: JsonObject,
): string {
  const pairs = parameters.flatMap((parameter) => {
    const value = argumentFor(group, parameter)
    return value === undefined ? [] : queryPairs(parameter, value, names)
  })
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

const delimiters = { form: ',', spaceDelimited: '%20', pipeDelimited: '%7C' } as const

/** OpenAPI 3.1 section 4.8.12.4 (style examples). */
function queryPairs(parameter: Parameter, value: JsonValue, names: ReadonlySet<string>): string[] {
  const { name, style, explode } = parameter
  const key = encodeText(name)
  if (style === 'json') return [`${key}=${encodeText(JSON.stringify(value))}`]
  if (Array.isArray(value)) {
    if (style === 'deepObject')
      throw new InvalidArgumentError(`the query parameter "${name}" must be an object`)
    const items = value.map((item) => encodeText(scalarText(parameter, item)))
    if (style === 'form' && explode) return items.map((item) => `${key}=${item}`)
    return [`${key}=${items.join(delimiters[style === 'simple' ? 'form' : style])}`]
  }
  if (!isJsonObject(value)) return [`${key}=${encodeText(scalarText(parameter, value))}`]
  const entries = Object.entries(value).map(
    ([inner, item]) => [inner, encodeText(scalarText(parameter, item))] as const,
  )
  if (style === 'deepObject')
    return entries.map(([inner, item]) => `${key}%5B${encodeText(inner)}%5D=${item}`)
  if (style === 'form' && explode) {
    const taken = entries.find(([inner]) => names.has(inner))
    if (taken)
      throw new InvalidArgumentError(`"${taken[0]}" in "${name}" conflicts with the parameter of that name`)
    return entries.map(([inner, item]) => `${encodeText(inner)}=${item}`)
  }
  return [`${key}=${entries.map(([inner, item]) => `${encodeText(inner)},${item}`).join(',')}`]
}

function encodeHeaders(parameters: readonly Parameter[], group: JsonObject): Headers {
  const headers: Headers = {}
  for (const parameter of parameters) {
    const value = argumentFor(group, parameter)
    if (value === undefined) continue
    const text =
      parameter.style === 'json' ? JSON.stringify(value) : encodeSimple(parameter, value, (part) => part)
    // RFC 9110 section 5.5; other characters could end the header line.
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text)) {
      throw new InvalidArgumentError(
        `the header "${parameter.name}" must not contain line breaks, control or non-Latin-1 characters`,
      )
    }
    headers[parameter.name.toLowerCase()] = text.trim()
  }
  return headers
}

function encodeSimple(parameter: Parameter, value: JsonValue, encode: (text: string) => string): string {
  if (parameter.style === 'json') return encode(JSON.stringify(value))
  const scalar = (item: JsonValue) => encode(scalarText(parameter, item))
  if (Array.isArray(value)) return value.map(scalar).join(',')
  if (!isJsonObject(value)) return scalar(value)
  return Object.entries(value)
    .map(([key, item]) => `${encode(key)}${parameter.explode ? '=' : ','}${scalar(item)}`)
    .join(',')
}

function scalarText({ name, in: position }: Parameter, value: JsonValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'object' && value !== null) {
    throw new InvalidArgumentError(`the ${position} parameter "${name}" is nested too deeply`)
  }
  return value === null ? '' : String(value)
}

/** Like `encodeURIComponent`, including characters reserved by RFC 3986. */
function encodeText(text: string): string {
  if (!text.isWellFormed()) throw new InvalidArgumentError('the arguments must be valid Unicode')
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function encodeBody(
  body: RequestBody | undefined,
  value: JsonValue | undefined,
  text: string | undefined,
): string | Uint8Array | undefined {
  if (body === undefined) return undefined
  if (value === undefined || text === undefined) {
    if (body.required) throw new InvalidArgumentError('"body" is missing')
    return undefined
  }
  switch (body.form) {
    case 'json':
      return text
    case 'text':
      if (typeof value !== 'string') throw new InvalidArgumentError('"body" must be a string')
      return value
    case 'base64':
      if (typeof value !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) {
        throw new InvalidArgumentError('"body" must be a string in base64')
      }
      return Buffer.from(value, 'base64')
    case 'urlencoded':
      if (!isJsonObject(value)) throw new InvalidArgumentError('"body" must be an object')
      return formText(value)
  }
}

const formField: Omit<Parameter, 'name'> = { in: 'query', required: false, style: 'form', explode: true }

function formText(value: JsonObject): string {
  return Object.entries(value)
    .filter(([, item]) => item !== null)
    .flatMap(([name, item]) => {
      if (isJsonObject(item)) throw new InvalidArgumentError(`"${name}" in "body" must not be an object`)
      return queryPairs({ ...formField, name }, item, new Set())
    })
    .join('&')
}
