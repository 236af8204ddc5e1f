import { createHash } from 'node:crypto'
import type { Config } from '../../../config/schema.ts'
import { isJsonObject } from '../../../lib/json/json.ts'

/**
 * Key of a part of a Config: `<section>/<name>` for an entry of `gateways`, `routes`, `tcpRoutes` or
 * `backends`, otherwise the name of the section.
 */
export type PartKey = string

/** 128 bits of SHA-256 over the line of a part, base64url. */
export type PartHash = string

/** Parts of a Config in order, without their values. Equal content has equal versions, in all processes. */
export type PartList = {
  readonly version: string
  readonly keys: readonly PartKey[]
  readonly hashes: readonly PartHash[]
}

/** A Config as parts. */
export type ConfigParts = PartList & { readonly values: readonly unknown[] }

/** Sections with one part for each entry. */
const listSections = ['routes', 'tcpRoutes', 'backends'] as const
const mapSection = 'gateways'

/** Line of a part in messages and in the persisted copy: JSON without newline. */
export function partLine(key: PartKey, value: unknown): string {
  return JSON.stringify([key, value])
}

export function hashLine(line: string): PartHash {
  return createHash('sha256').update(line).digest().toString('base64url', 0, hashBytes)
}

const hashBytes = 16

/**
 * Creates a function that divides Configs into parts. A node is serialised and hashed once: nodes that two
 * Configs share cost little the second time, and those at the same place as in `previous` less. Yields
 * between parts.
 */
export function createDivider(): (config: Config, previous?: ConfigParts) => Generator<void, ConfigParts> {
  const known = new WeakMap<object, { key: PartKey; hash: PartHash }>()

  function hashOf(key: PartKey, value: unknown): PartHash {
    if (typeof value !== 'object' || value === null) return hashLine(partLine(key, value))
    const found = known.get(value)
    if (found?.key === key) return found.hash
    const hash = hashLine(partLine(key, value))
    known.set(value, { key, hash })
    return hash
  }

  return function* divide(config, previous) {
    const sections = sectionsOf(config)
    const values = sections.flatMap(({ values }) => values)
    const keys = sameKeys(sections, previous) ?? uniqueKeys(sections)
    const hashes: PartHash[] = []
    for (const [index, value] of values.entries()) {
      const isSame = keys === previous?.keys && Object.is(value, previous.values[index])
      hashes.push((isSame ? previous.hashes[index] : undefined) ?? hashOf(keys[index] ?? '', value))
      if (!isSame) yield
    }
    return { version: versionOf(hashes), keys, values, hashes }
  }
}

/** Version of parts in this order. A hash includes the key of its part. */
export function versionOf(hashes: readonly PartHash[]): string {
  return createHash('sha256').update(hashes.join()).digest('base64url')
}

/** A section as parts. */
type Section = {
  readonly name: string
  readonly values: readonly unknown[]
  /** Name of an entry; undefined if the section is one part. */
  readonly nameAt: ((index: number) => string) | undefined
}

function sectionsOf(config: Config): Section[] {
  return Object.entries(config)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => sectionOf(name, value))
}

function sectionOf(name: string, value: unknown): Section {
  if (name === mapSection && isJsonObject(value)) {
    const names = Object.keys(value)
    const nameAt = (index: number) => names[index] ?? ''
    if (names.length > 0) return { name, values: Object.values(value), nameAt }
  }
  if (isListSection(name) && Array.isArray(value) && value.length > 0) {
    const values: readonly unknown[] = value
    return { name, values, nameAt: (index) => nameOf(values[index]) }
  }
  return { name, values: [value], nameAt: undefined }
}

function keyOf({ name, nameAt }: Section, index: number): PartKey {
  return nameAt === undefined ? name : `${name}/${nameAt(index)}`
}

/** The keys of `previous` if they apply here too: most changes edit some parts in place. */
function sameKeys(
  sections: readonly Section[],
  previous: ConfigParts | undefined,
): readonly PartKey[] | undefined {
  if (previous === undefined) return undefined
  let place = 0
  for (const section of sections) {
    for (const [index, value] of section.values.entries()) {
      const isSame = Object.is(value, previous.values[place])
      if (!isSame && keyOf(section, index) !== previous.keys[place]) return undefined
      place += 1
    }
  }
  return place === previous.keys.length ? previous.keys : undefined
}

/** Keys are unique: equal names receive a number. */
function uniqueKeys(sections: readonly Section[]): readonly PartKey[] {
  const used = new Set<PartKey>()
  const numbers = new Map<PartKey, number>()
  for (const section of sections) {
    for (const index of section.values.keys()) {
      const wanted = keyOf(section, index)
      let key = wanted
      while (used.has(key)) {
        const number = (numbers.get(wanted) ?? 0) + 1
        numbers.set(wanted, number)
        key = `${wanted}#${number}`
      }
      used.add(key)
    }
  }
  return [...used]
}

/**
 * Joins parts to a Config, with the same nodes as the parts. `previous` is an earlier result; a section with
 * the same nodes in the same order is shared with it.
 */
export function joinParts(
  keys: readonly PartKey[],
  values: readonly unknown[],
  previous: Config | undefined,
): Config {
  const joined: Record<string, unknown> = {}
  for (const [index, key] of keys.entries()) {
    const slash = key.indexOf('/')
    const section = slash < 0 ? key : key.slice(0, slash)
    if (slash < 0) joined[section] = values[index]
    else if (section === mapSection) setMember(mapOf(joined, section), key.slice(slash + 1), values[index])
    else listOf(joined, section).push(values[index])
  }
  const before = new Map<string, unknown>(Object.entries(previous ?? {}))
  for (const [section, value] of Object.entries(joined)) {
    const earlier = before.get(section)
    if (hasSameNodes(earlier, value)) joined[section] = earlier
  }
  // Validated by the reader of the stream before use.
  return joined as Config
}

/**
 * Replaces parts of a Config by their places in its keys, the order of the Config; other sections are shared.
 */
export function replaceParts(
  config: Config,
  keys: readonly PartKey[],
  replaced: ReadonlyMap<number, unknown>,
): Config {
  const sections = new Map<string, unknown>(Object.entries(config))
  const copies = new Map<string, unknown[] | object>()
  const starts = startsOf(keys)
  for (const [place, value] of replaced) {
    const key = keys[place] ?? ''
    const slash = key.indexOf('/')
    const name = slash < 0 ? key : key.slice(0, slash)
    const whole = copies.get(name) ?? copyOf(sections.get(name))
    if (slash < 0 || whole === undefined) {
      sections.set(name, value)
      continue
    }
    copies.set(name, whole)
    sections.set(name, whole)
    if (Array.isArray(whole)) whole[place - (starts.get(name) ?? 0)] = value
    else setMember(whole, key.slice(slash + 1), value)
  }
  // As `joinParts`.
  return Object.fromEntries(sections) as Config
}

/** The place of the first part of each section. */
function startsOf(keys: readonly PartKey[]): Map<string, number> {
  const starts = new Map<string, number>()
  for (const section of listSections) {
    const place = keys.findIndex((key) => key.startsWith(`${section}/`))
    if (place >= 0) starts.set(section, place)
  }
  return starts
}

function copyOf(section: unknown): unknown[] | object | undefined {
  if (Array.isArray(section)) return [...section]
  return isJsonObject(section) ? { ...section } : undefined
}

/** Whether a key is that of a section or of an entry of a divided section. */
export function isPartKey(key: string): boolean {
  const slash = key.indexOf('/')
  if (slash < 0) return /^[A-Za-z]+$/.test(key)
  const section = key.slice(0, slash)
  return section === mapSection || isListSection(section)
}

function isListSection(section: string): boolean {
  return listSections.some((name) => name === section)
}

function mapOf(joined: Record<string, unknown>, section: string): object {
  const found = joined[section]
  if (isJsonObject(found)) return found
  const created = {}
  joined[section] = created
  return created
}

function listOf(joined: Record<string, unknown>, section: string): unknown[] {
  const found = joined[section]
  if (Array.isArray(found)) return found
  const created: unknown[] = []
  joined[section] = created
  return created
}

function hasSameNodes(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((entry, index) => Object.is(entry, other[index]))
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return Object.is(one, other)
  const entries = Object.entries(one)
  const others = Object.entries(other)
  return (
    entries.length === others.length &&
    entries.every(([key, entry], index) => {
      const [otherKey, otherEntry] = others[index] ?? []
      return key === otherKey && Object.is(entry, otherEntry)
    })
  )
}

function nameOf(entry: unknown): string {
  if (!isJsonObject(entry) || !('name' in entry)) return ''
  return typeof entry.name === 'string' ? entry.name : ''
}

/** Defined, not assigned: a name may be `__proto__`. */
function setMember(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}
