import { labelOf } from './label.ts'
import { isObject } from './value.ts'

const telling = ['name', 'id', 'title', 'host', 'url', 'path', 'pattern', 'builtin', 'key', 'file']
const maxLength = 80

/** A short text that identifies a value among others: a name, or the first texts and numbers in it. */
export function summaryOf(value: unknown): string | undefined {
  if (value === undefined || value === '') return undefined
  if (!isObject(value)) return shortened(typeof value === 'string' ? value : JSON.stringify(value))
  for (const member of telling) {
    const text = Object.hasOwn(value, member) ? value[member] : undefined
    if (typeof text === 'string' && text !== '' && text !== '***') return shortened(text)
  }
  const [first] = Object.entries(value).filter(([, member]) => member !== undefined)
  if (first === undefined) return undefined
  const [name, member] = first
  const inside = Array.isArray(member) ? String(member.length) : (summaryOf(member) ?? '')
  return shortened(`${labelOf(name)} ${inside}`.trim())
}

function shortened(text: string): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
}
