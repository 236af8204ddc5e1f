import type { Schema } from '../schema/dsl.ts'
import { type Field, type Shape, shapeOf } from '../schema/shape.ts'

type ObjectShape = Shape & { kind: 'object' }
/** An object of the configuration and its path in the file. */
type Section = { path: string; shape: ObjectShape; choiceOf: number }

/**
 * Renders the reference of the configuration file in Markdown, from the schema: a section for each object,
 * with its fields, their types, defaults and descriptions.
 */
// biome-ignore-start lint/suspicious/noTemplateCurlyInString: environment references
export function renderConfigReference(schema: Schema): string {
  return `${[
    '# Configuration reference',
    '<!-- Generated from the schema by `npm run docs`. -->',
    'Fields marked * are required. `[]` stands for any item of a list and `<name>` for any key. Values, not keys, may refer to the ' +
      'environment: `${NAME}`, `$NAME`, `${NAME:-default}`; `$$` is a dollar sign. Durations are written `500ms`, `10s` or ' +
      '`1h30m`. Fields marked secret are never shown in logs, messages or pages.',
    ...renderSections(schema, { path: '', level: '##' }),
  ].join('\n\n')}\n`
}

// biome-ignore-end lint/suspicious/noTemplateCurlyInString: see above

/** Renders a section for each object of a schema for a path; `level` is the mark of headings. */
export function renderSections(schema: Schema, { path, level }: { path: string; level: string }): string[] {
  const places: Places = new Map()
  const sections = sectionsOf(shapeOf(schema), { path, choiceOf: 1 }, places)
  return sections.map((section) => `${level} ${renderSection(section, places)}`)
}

/** Path of the section of each object; an object with several paths has one section. */
type Places = Map<Shape, string>
type At = { path: string; choiceOf: number }

function sectionsOf(shape: Shape, { path, choiceOf }: At, places: Places): Section[] {
  switch (shape.kind) {
    case 'object': {
      if (places.has(shape)) return []
      places.set(shape, path)
      const under = (name: string) => (path === '' ? name : `${path}.${name}`)
      const inner = [...shape.fields].flatMap(([name, field]) =>
        sectionsOf(field.shape, { path: under(name), choiceOf: 1 }, places),
      )
      return [{ path, shape, choiceOf }, ...inner]
    }
    case 'list':
      return sectionsOf(shape.item, { path: `${path}[]`, choiceOf: 1 }, places)
    case 'map':
      return sectionsOf(shape.value, { path: `${path}.<name>`, choiceOf: 1 }, places)
    case 'choice': {
      const objects = shape.shapes.filter((option) => option.kind === 'object').length
      return shape.shapes.flatMap((option) => sectionsOf(option, { path, choiceOf: objects }, places))
    }
    default:
      return []
  }
}

function renderSection({ path, shape, choiceOf }: Section, places: Places): string {
  const title = path === '' ? 'Top level' : `\`${path}\``
  // Alternatives need distinct headings.
  const heading = choiceOf > 1 ? `${title}: ${[...shape.fields.keys()].join(', ')}` : title
  const choice =
    shape.exactlyOne.length === 0 ? [] : [`Exactly one of ${shape.exactlyOne.map(code).join(', ')}.`]
  const fields = [...shape.fields].toSorted(([, one], [, other]) => rank(one) - rank(other))
  return [heading, shape.meta.doc, ...choice, renderTable(fields, { path, places })]
    .filter((part) => part !== '')
    .join('\n\n')
}

function rank({ shape }: Field): number {
  return shape.meta.advanced === true ? 1 : 0
}

type Within = { path: string; places: Places }

function renderTable(fields: readonly [string, Field][], within: Within): string {
  if (fields.length === 0) return ''
  const rows = fields.map(([name, field]) => renderRow(name, field, within))
  return ['| Field | Type | Default | Description |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

/** Sections that describe the objects of a field, except those below it. */
function described(shape: Shape, path: string, places: Places): string[] {
  switch (shape.kind) {
    case 'object': {
      const place = places.get(shape)
      return place === undefined || place === path ? [] : [place]
    }
    case 'list':
      return described(shape.item, `${path}[]`, places)
    case 'map':
      return described(shape.value, `${path}.<name>`, places)
    case 'choice':
      return shape.shapes.flatMap((option) => described(option, path, places))
    default:
      return []
  }
}

function renderRow(name: string, { shape, required }: Field, { path, places }: Within): string {
  const { doc, example, secret, advanced } = shape.meta
  const elsewhere = new Set(described(shape, path === '' ? name : `${path}.${name}`, places))
  const notes = [
    doc,
    ...[...elsewhere].map((place) => `As ${code(place)}.`),
    example === undefined ? '' : `Example: ${renderValue(example)}.`,
    secret === true ? '**Secret.**' : '',
    advanced === true ? '*Advanced.*' : '',
  ]
  const cells = [
    `${code(name)}${required ? ' *' : ''}`,
    typeWords(shape),
    renderDefault(shape.meta.default),
    notes.filter((note) => note !== '').join(' '),
  ]
  return `| ${cells.map(cell).join(' | ')} |`
}

function typeWords(shape: Shape): string {
  const { format, min, max } = shape.meta
  switch (shape.kind) {
    case 'string':
      return format === undefined ? 'text' : formatWords[format]
    case 'number':
      return format === undefined
        ? `${shape.integer ? 'whole number' : 'number'}${range(min, max)}`
        : formatWords[format]
    case 'boolean':
      return '`true` or `false`'
    case 'enumeration':
      return shape.values.map(code).join(', ')
    case 'list':
      return `list of ${typeWords(shape.item)}`
    case 'map':
      return `map of names to ${typeWords(shape.value)}`
    case 'object':
      return 'object'
    case 'choice':
      return [...new Set(shape.shapes.map(typeWords))].join(' or ')
    case 'any':
      return 'any JSON'
  }
}

const formatWords = {
  duration: 'duration',
  'host:port': '`host:port`',
  'service address': '`host:port` or `unix:/path`',
  cel: 'CEL expression',
  url: 'URL',
  port: 'port',
  file: 'path of a file',
}

function range(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`
  if (min !== undefined) return `, at least ${min}`
  return max === undefined ? '' : `, at most ${max}`
}

/** A default that is a sentence is not code. */
function renderDefault(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' && value.includes(' ') ? value : renderValue(value)
}

function renderValue(value: unknown): string {
  return code(typeof value === 'string' ? value : JSON.stringify(value))
}

function code(text: string): string {
  const fence = text.includes('`') ? '``' : '`'
  return `${fence}${text}${fence}`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
