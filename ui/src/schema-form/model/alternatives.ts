import { labelOf } from './label.ts'
import { readNode } from './node.ts'
import { type Definitions, type JsonSchema, resolveSchema } from './schema.ts'
import { isObject } from './value.ts'

/** Index of the alternative that a value has the form of; -1 if none, 0 for an absent value. */
export function matchOption(
  value: unknown,
  options: readonly JsonSchema[],
  definitions: Definitions,
): number {
  if (value === undefined) return 0
  const scores = options.map((option) => likeness(value, option, definitions))
  const best = Math.max(...scores)
  return best < 0 ? -1 : scores.indexOf(best)
}

/** How well a value fits an alternative: negative if its type differs. */
function likeness(value: unknown, option: JsonSchema, definitions: Definitions): number {
  const node = readNode(option, definitions)
  switch (node.kind) {
    case 'text':
      return typeof value === 'string' ? 0 : -1
    case 'number':
      return typeof value === 'number' ? 1 : -1
    case 'boolean':
      return typeof value === 'boolean' ? 1 : -1
    case 'choice':
      return node.values.includes(value) ? 1 : -1
    case 'list':
      return Array.isArray(value) ? 0 : -1
    // An object with exactly the fields of an alternative is that one, any other object is a free one.
    case 'json':
    case 'map':
      return isObject(value) ? 500 : -1
    case 'alternatives':
      return matchOption(value, node.options, definitions) === -1 ? -1 : 0
    case 'object': {
      if (!isObject(value)) return -1
      const known = node.fields.filter(({ name }) => Object.hasOwn(value, name)).length
      const missing = node.fields.filter(
        ({ name, required }) => required && !Object.hasOwn(value, name),
      ).length
      const unknown = Object.keys(value).length - known
      const variants = node.oneOf.filter((name) => Object.hasOwn(value, name)).length
      const wrongVariants = node.oneOf.length > 0 && variants !== 1 ? 1 : 0
      const flaws = 10 * unknown + 2 * missing + wrongVariants
      return flaws === 0 ? 1000 + known : Math.max(0, 400 + known - flaws)
    }
  }
}

/** Short names of alternatives, by what distinguishes them. */
export function optionLabels(options: readonly JsonSchema[], definitions: Definitions): readonly string[] {
  const resolved = options.map((option) => resolveSchema(option, definitions))
  const labels = resolved.map((option, index) =>
    optionLabel(
      option,
      resolved.filter((_, other) => other !== index),
    ),
  )
  return labels.map((label, index) =>
    labels.indexOf(label) === index && labels.lastIndexOf(label) === index
      ? label
      : `${label} (${index + 1})`,
  )
}

const textLabels: Readonly<Record<string, string>> = {
  cel: 'Expression',
  url: 'Address',
  file: 'File',
  duration: 'Duration',
}

function optionLabel(option: JsonSchema, others: readonly JsonSchema[]): string {
  if (option.enum !== undefined) return 'Preset'
  if (option.type === 'array') return 'Several'
  if (option.type === 'string') return textLabels[option['x-format'] ?? ''] ?? 'Text'
  if (option.type !== 'object') return option.type === undefined ? 'Other' : labelOf(option.type)
  const taken = new Set(others.flatMap((other) => Object.keys(other.properties ?? {})))
  const own = Object.keys(option.properties ?? {}).filter((name) => !taken.has(name))
  if (own.length === 0) return option.properties === undefined ? 'Document' : 'Object'
  const variants = (option.oneOf ?? []).flatMap(({ required }) => required)
  const required = own.filter((name) => option.required?.includes(name))
  const telling = [variants.filter((name) => own.includes(name)), required, own].find(
    (list) => list.length > 0,
  )
  const shown = (telling ?? own).slice(0, 3).map(labelOf)
  return shown.map((name, index) => (index === 0 ? name : lowerStart(name))).join(' / ')
}

function lowerStart(text: string): string {
  return /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text
}
