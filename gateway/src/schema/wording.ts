import type { Format } from './dsl.ts'
import { withoutCredentials } from './printable.ts'
import type { Shape } from './shape.ts'

const longestShown = 60

const formatWords: Record<Format, string> = {
  duration: 'a duration such as 500ms, 10s or 1h30m',
  'host:port': 'host:port, such as 127.0.0.1:8080 or [::1]:8080',
  'service address':
    'host:port, such as 127.0.0.1:8080, or unix:/path with an absolute path of at most 103 bytes',
  url: 'an address that starts with http:// or https://',
  cel: 'a CEL expression',
  port: 'a port number',
  file: 'the path of a file',
}

/** Describes the expected shapes, as text after "expected". */
export function expectedShape(shapes: readonly Shape[]): string {
  const words = [...new Set(shapes.map(shapeWords))]
  return words.length === 0 ? 'nothing' : words.join(' or ')
}

/** Describes the expected format of a value of the right kind. */
export function expectedFormat(shapes: readonly Shape[]): string {
  const formatted = shapes.filter((shape) => shape.meta.format !== undefined)
  return expectedShape(formatted.length === 0 ? shapes : formatted)
}

/** Describes a value, as text after "got": only its kind if it is not visible. */
export function describeValue(value: unknown, visible: boolean): string {
  switch (typeof value) {
    case 'string':
      if (value === '') return 'an empty string'
      return visible ? `the string ${JSON.stringify(shortened(withoutCredentials(value)))}` : 'a string'
    case 'number':
      return visible ? `the number ${value}` : 'a number'
    case 'boolean':
      return visible ? String(value) : 'true or false'
    default:
      if (value === null) return 'nothing (null)'
      return Array.isArray(value) ? 'a list' : 'an object'
  }
}

function shapeWords(shape: Shape): string {
  if (shape.meta.format !== undefined) return formatWords[shape.meta.format]
  switch (shape.kind) {
    case 'string':
      return 'a string'
    case 'number':
      return shape.integer ? 'a whole number' : 'a number'
    case 'boolean':
      return 'true or false'
    case 'enumeration':
      return shape.values.length === 1 ? `${shape.values[0]}` : `one of ${shape.values.join(', ')}`
    case 'list':
      return 'a list'
    case 'map':
    case 'object':
      return 'an object'
    case 'choice':
      return expectedShape(shape.shapes)
    case 'any':
      return 'a value'
  }
}

function shortened(text: string): string {
  return text.length > longestShown ? `${text.slice(0, longestShown)}…` : text
}
