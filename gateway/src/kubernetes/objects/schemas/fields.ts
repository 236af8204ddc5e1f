import {
  boolean,
  integer,
  list,
  map,
  name,
  openObject,
  optional,
  type Schema,
  string,
} from '../../../schema/dsl.ts'

// Fields that several kinds have. Objects are open: the API adds fields in minor versions.

/** Type of a value that nobody changes. */
export type ReadonlyOf<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyOf<Item>[]
  : T extends object
    ? { readonly [Field in keyof T]: ReadonlyOf<T[Field]> }
    : T

export const maxPort = 65_535

export function optionalText(doc: string) {
  return optional(string({ doc }))
}

export function optionalFlag(doc: string) {
  return optional(boolean({ doc }))
}

export function optionalNumber(doc: string, range: { min?: number; max?: number } = {}) {
  return optional(integer({ doc }, range))
}

export function optionalList<T>(item: Schema<T>, doc: string) {
  return optional(list(item, { doc }))
}

export function optionalTexts(doc: string) {
  return optionalList(string({ doc }), doc)
}

export function portNumber(doc: string) {
  return integer({ doc }, { min: 1, max: maxPort })
}

export function textMap(doc: string) {
  return map(string({ doc }), { doc })
}

const referenceFields = {
  group: optionalText('API group.'),
  kind: optionalText('Kind.'),
  name: name({ doc: 'Name.' }),
  namespace: optionalText('Namespace, by default that of the object.'),
}

export const objectReference = openObject(referenceFields, { doc: 'Reference to an object.' })

const maxWeight = 1_000_000

export const backendReferenceFields = {
  ...referenceFields,
  port: optional(portNumber('Port of a Service.')),
  weight: optionalNumber('Share of the requests.', { min: 0, max: maxWeight }),
}

export const parentReference = openObject(
  {
    ...referenceFields,
    sectionName: optionalText('Name of a listener.'),
    port: optional(portNumber('Port of a listener.')),
  },
  { doc: 'Parent of a route.' },
)
