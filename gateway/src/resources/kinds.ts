import { catalogSchema } from '../backends/llm/catalog/config.ts'
import { configSchema } from '../config/schema.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from '../schema/shape.ts'

/** Where records of a kind stand in the configuration, and what identifies them there. */
export type Placement =
  /** Items of a list, each with a name: the first of `identity` that it has. */
  | { readonly kind: 'list'; readonly path: readonly string[]; readonly identity: readonly string[] }
  /** Entries of a map. The name is a member of the record, and its key in the map. */
  | { readonly kind: 'map'; readonly path: readonly string[] }
  /**
   * Fields of an object, each of another shape. The name of the field is the name of the record. `orphan` says why there can
   * be none where the file lacks the section.
   */
  | { readonly kind: 'policies'; readonly path: readonly string[]; readonly orphan?: string }
  /** Virtual keys: records without a name, with a random id. */
  | { readonly kind: 'keys'; readonly path: readonly string[] }
  /** One record, whose fields stand among others in an object. */
  | { readonly kind: 'settings'; readonly path: readonly string[]; readonly fields: readonly string[] }
  /** One record of two catalogs, which are entries of a list. */
  | { readonly kind: 'catalog'; readonly path: readonly string[]; readonly fields: readonly string[] }

/** A kind of config resources. API, overlay, file edits and documents iterate the rows and know no kind by name. */
export type Kind = { readonly name: string; readonly doc: string; readonly placement: Placement }

/** Exactly these 13 kinds (specification, "Config resource kinds"). */
export const kinds: readonly Kind[] = [
  {
    name: 'modelCatalog',
    doc: 'Prices and limits of models: a `base` and a `custom` catalog, of which `custom` counts first.',
    placement: { kind: 'catalog', path: ['config', 'modelCatalog'], fields: ['base', 'custom'] },
  },
  {
    name: 'llm.provider',
    doc: 'Settings of a provider that models share: an item of `llm.providers`.',
    placement: { kind: 'list', path: ['llm', 'providers'], identity: ['name'] },
  },
  {
    name: 'llm.model',
    doc: 'A model clients may ask for: an item of `llm.models`, known by its `id`, else its `name`.',
    placement: { kind: 'list', path: ['llm', 'models'], identity: ['id', 'name'] },
  },
  {
    name: 'llm.virtualModel',
    doc: 'A name that stands for several models: an item of `llm.virtualModels`.',
    placement: { kind: 'list', path: ['llm', 'virtualModels'], identity: ['name'] },
  },
  {
    name: 'llm.apiKey',
    doc: 'A virtual key. Its id is made by the gateway and copied to `metadata.id`.',
    placement: { kind: 'keys', path: ['llm', 'policies', 'apiKey', 'keys'] },
  },
  {
    name: 'llm.policy',
    doc: 'One policy of `llm.policies`, known by the name of its field.',
    placement: {
      kind: 'policies',
      path: ['llm', 'policies'],
      orphan: 'DB-backed LLM policies require llm in the file config',
    },
  },
  {
    name: 'mcp.target',
    doc: 'An MCP server: an item of `mcp.targets`.',
    placement: { kind: 'list', path: ['mcp', 'targets'], identity: ['name'] },
  },
  {
    name: 'mcp.policy',
    doc: 'One policy of `mcp.policies`, known by the name of its field.',
    placement: { kind: 'policies', path: ['mcp', 'policies'] },
  },
  {
    name: 'mcp.settings',
    doc: 'Settings of the MCP endpoint. There is one record, named `default`; fields it lacks are not set.',
    placement: {
      kind: 'settings',
      path: ['mcp'],
      fields: ['gateways', 'port', 'statefulMode', 'prefixMode', 'failureMode'],
    },
  },
  {
    name: 'traffic.gateway',
    doc: 'A gateway: an entry of `gateways`, with its name beside its fields.',
    placement: { kind: 'map', path: ['gateways'] },
  },
  {
    name: 'traffic.route',
    doc: 'A route: an item of `routes`.',
    placement: { kind: 'list', path: ['routes'], identity: ['name'] },
  },
  {
    name: 'traffic.tcpRoute',
    doc: 'A TCP route: an item of `tcpRoutes`.',
    placement: { kind: 'list', path: ['tcpRoutes'], identity: ['name'] },
  },
  {
    name: 'ui.policy',
    doc: 'One policy of `ui.policies`, known by the name of its field.',
    placement: {
      kind: 'policies',
      path: ['ui', 'policies'],
      orphan: 'DB-backed UI policies require ui in the file config',
    },
  },
]

const byName: ReadonlyMap<string, Kind> = new Map(kinds.map((kind) => [kind.name, kind]))

export function findKind(name: string): Kind | undefined {
  return byName.get(name)
}

const keysPath = kinds.flatMap(({ placement }) => (placement.kind === 'keys' ? [placement.path] : []))

/** Whether this policy is the one whose keys are records of their own. */
export function isKeyPolicy({ placement }: Kind, name: string): boolean {
  if (placement.kind !== 'policies') return false
  const path = [...placement.path, name]
  return keysPath.some(
    (keys) => keys.length === path.length + 1 && path.every((step, at) => keys[at] === step),
  )
}

/** The name of the one record of kinds that have just one. */
export const singletonName = 'default'

export function isSingleton({ placement }: Kind): boolean {
  return placement.kind === 'settings' || placement.kind === 'catalog'
}

/** Sections that are made where a record needs them, and what they cannot be without. The others belong to the file. */
const freshSections: ReadonlyMap<string, ConfigSection> = new Map([
  ['llm', { models: [] }],
  ['mcp', { targets: [] }],
])

export type ConfigSection = Readonly<Record<string, readonly unknown[]>>

/** What a missing top-level section of the configuration starts as; undefined where only the file can say so. */
export function freshSection(name: string): ConfigSection | undefined {
  return freshSections.get(name)
}

/** The shapes a record of this kind may have; for policies those of the field. */
export function shapesOf({ placement }: Kind, name: string | undefined): readonly Shape[] {
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return shapesAt([...placement.path, 0])
    case 'map':
      return shapesAt([...placement.path, ''])
    case 'policies':
      return name === undefined ? [] : shapesAt([...placement.path, name])
    case 'settings':
      return shapesAt(placement.path)
    case 'catalog':
      return alternativesOf(shapeOf(catalogSchema))
  }
}

/** The fields that records of a policies kind may be. */
export function policyFields({ placement }: Kind): readonly string[] {
  if (placement.kind !== 'policies') return []
  return shapesAt(placement.path).flatMap((shape) =>
    shape.kind === 'object' ? [...shape.fields.keys()] : [],
  )
}

function shapesAt(path: readonly (string | number)[]): readonly Shape[] {
  let shapes = alternativesOf(shapeOf(configSchema))
  for (const step of path) shapes = childShapes(shapes, step)
  return shapes
}
