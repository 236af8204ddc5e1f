import type { Schema } from '../../schema/dsl.ts'
import { shapeOf } from '../../schema/shape.ts'
import { ownGroup } from '../objects/kinds.ts'
import { type StructuralSchema, structuralSchema, type Validation, withRules } from './structural.ts'

export type CrdOptions = {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly labels?: Readonly<Record<string, string>>
  readonly spec: Schema
  readonly status: StructuralSchema
  /** Rules of `spec` over several fields. */
  readonly rules?: readonly Validation[]
  /** Lists of `spec` whose items have a unique key, so that several owners can each add items. */
  readonly keys?: Readonly<Record<string, string>>
  /** Names and JSON paths of conditions and fields in the output of `kubectl get`. */
  readonly columns: readonly Column[]
}

export type Column = {
  readonly name: string
  readonly path: string
  readonly description: string
  /** Only in wide output. */
  readonly isWide?: boolean
}

export type CustomResourceDefinition = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: {
    readonly versions: readonly {
      readonly name: string
      readonly schema: { readonly openAPIV3Schema: StructuralSchema }
      readonly [field: string]: unknown
    }[]
    readonly [field: string]: unknown
  }
}

/** Version of the own kinds. */
export const crdVersion = 'v1alpha1'

/** Creates the definition of one of the gateway's own kinds from the schema of its `spec`. */
export function createCrd(options: CrdOptions): CustomResourceDefinition {
  const { kind, plural, shortName, labels = {}, columns } = options
  const age: Column = { name: 'Age', path: '.metadata.creationTimestamp', description: 'Age of the object.' }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${ownGroup}`, labels: { 'app.kubernetes.io/name': 'tollgate', ...labels } },
    spec: {
      group: ownGroup,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['tollgate', 'gateway-api'],
      },
      versions: [
        {
          name: crdVersion,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [...columns, age].map(printerColumn),
          schema: { openAPIV3Schema: rootSchema(options) },
        },
      ],
    },
  }
}

function printerColumn({ name, path, description, isWide = false }: Column): object {
  const type = name === 'Age' ? 'date' : 'string'
  return { name, type, jsonPath: path, description, ...(isWide ? { priority: 1 } : {}) }
}

function rootSchema({ kind, spec, status, rules = [], keys = {} }: CrdOptions): StructuralSchema {
  const shape = shapeOf(spec)
  const schema = withKeys(structuralSchema(shape), keys)
  const own = schema['x-kubernetes-validations'] as readonly Validation[] | undefined
  const all = [...(own ?? []), ...rules]
  return {
    description: `${kind}: ${shape.meta.doc}`,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { description: 'Version of the kind.', type: 'string', maxLength: 253 },
      kind: { description: 'Kind of the object.', type: 'string', maxLength: 63 },
      metadata: { type: 'object' },
      spec: all.length === 0 ? schema : { ...schema, ...withRules(all) },
      status,
    },
  }
}

function withKeys(schema: StructuralSchema, keys: Readonly<Record<string, string>>): StructuralSchema {
  const properties = schema['properties'] as Readonly<Record<string, StructuralSchema>> | undefined
  if (properties === undefined) return schema
  const keyed = Object.entries(keys).map(([field, key]) => [
    field,
    { ...properties[field], 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] },
  ])
  return { ...schema, properties: { ...properties, ...Object.fromEntries(keyed) } }
}
