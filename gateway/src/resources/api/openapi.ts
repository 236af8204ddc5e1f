import { valueAt } from '../../schema/path.ts'
import { isTree } from '../hybrid/overlay.ts'
import { isKeyPolicy, type Kind, kinds } from '../kinds.ts'
import { historyParameters, historyPaths, historySchemas } from './history-openapi.ts'
import { body, type Json, type OpenApiPart, plainGet, ref, responses } from './openapi-part.ts'

/**
 * The admin API as an OpenAPI 3.1 document: the config resource API, generated from the rows of kinds and the
 * JSON Schema of the configuration, and the parts of other endpoints.
 */
export function openApiDocument(
  configSchema: object,
  version: string,
  parts: readonly OpenApiPart[],
): object {
  const config = relocated(configSchema)
  const definitions = isTree(config['definitions']) ? config['definitions'] : {}
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate admin API',
      version,
      description:
        'Changes parts of the configuration while the gateway runs, and reads its state and its request log.',
    },
    paths: {
      '/api/config/status': {
        get: plainGet(
          'Active configuration: status, time of activation, last error; state of storage and ledger.',
        ),
      },
      '/api/config/schema': { get: plainGet('JSON Schema of the configuration file.') },
      '/api/config/effective': {
        get: plainGet('Active configuration of file and database, with secrets masked.'),
      },
      '/api/config/openapi.json': { get: plainGet('This document.') },
      '/api/config/resources': {
        get: {
          summary: 'All records of all kinds.',
          parameters: listParameters,
          responses: listResponses(ref('Envelope')),
        },
        put: {
          summary: 'Imports records of all kinds with their ids, all or none. Hybrid mode only.',
          parameters: [parameter('import'), parameter('dryRun'), parameter('reveal')],
          requestBody: body({
            type: 'object',
            properties: { resources: { type: 'array', items: ref('Envelope') } },
          }),
          responses: listResponses(ref('Envelope')),
        },
      },
      ...historyPaths(parameter),
      ...Object.fromEntries(kinds.flatMap(pathsOf)),
      ...Object.assign({}, ...parts.map(({ paths }) => paths)),
    },
    components: {
      schemas: {
        Envelope: envelope({}),
        Error: { type: 'string', description: 'Error message.' },
        Problem: problem,
        ...historySchemas,
        ...Object.fromEntries(
          Object.entries(definitions).map(([name, schema]) => [`${definitionPrefix}${name}`, schema]),
        ),
        ...Object.fromEntries(kinds.map((kind) => [schemaName(kind), valueSchema(kind, config)])),
        ...Object.assign({}, ...parts.map(({ schemas }) => schemas)),
      },
      parameters: {
        id: {
          name: 'id',
          in: 'path',
          required: true,
          description: 'Id, or name of a named record.',
          schema: { type: 'string' },
        },
        dryRun: {
          name: 'dryRun',
          in: 'query',
          description: 'Validates the change and returns the result without storing it.',
          schema: { type: 'boolean', default: false },
        },
        ...queryParameters,
        ...historyParameters,
        ifMatch: {
          name: 'If-Match',
          in: 'header',
          description: 'Expected revision of the record, in quotes. Hybrid mode only.',
          schema: { type: 'string' },
        },
      },
    },
  }
}

/** Prefix of the shared definitions of the configuration schema. */
const definitionPrefix = 'config_'

function relocated(configSchema: object): Json {
  const text = JSON.stringify(configSchema)
  const moved: unknown = JSON.parse(
    text.replaceAll('"#/definitions/', `"#/components/schemas/${definitionPrefix}`),
  )
  return isTree(moved) ? moved : {}
}

const problem: Json = {
  type: 'object',
  description: 'RFC 9457, for clients that accept `application/problem+json`.',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
  },
}

function pathsOf(kind: Kind): [string, Json][] {
  const value = ref(schemaName(kind))
  const stored = listResponses(envelope(value))
  const collection = {
    get: {
      summary: `Lists records. ${kind.doc}`,
      parameters: listParameters,
      responses: listResponses(envelope(value)),
    },
    put: {
      summary: 'Creates records, or replaces those of the same name, all or none.',
      parameters: [parameter('dryRun'), parameter('reveal')],
      requestBody: body({
        type: 'object',
        properties: { resources: { type: 'array', items: withValue(value) } },
      }),
      responses: stored,
    },
  }
  const item = {
    parameters: [parameter('id')],
    get: { summary: 'One record.', parameters: [parameter('reveal')], responses: responses(envelope(value)) },
    put: {
      summary: 'Replaces a record as a whole.',
      parameters: [parameter('dryRun'), parameter('reveal'), parameter('ifMatch')],
      requestBody: body(withValue(value)),
      responses: stored,
    },
    delete: {
      summary: 'Deletes a record.',
      parameters: [parameter('dryRun'), parameter('ifMatch')],
      responses: responses({
        type: 'object',
        properties: { status: { const: 'success' }, message: { type: 'string' } },
      }),
    },
  }
  const path = `/api/config/resources/${kind.name}`
  return [
    [path, collection],
    [`${path}/{id}`, item],
  ]
}

function valueSchema(kind: Kind, configSchema: object): Json {
  const { placement } = kind
  const at = (path: readonly string[]) => schemaAt(configSchema, path)
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return { ...at([...placement.path, 'items']), title: kind.name }
    case 'map': {
      const entry = at([...placement.path, 'additionalProperties'])
      const fields = isTree(entry['properties']) ? entry['properties'] : {}
      const required = Array.isArray(entry['required']) ? entry['required'] : []
      const name = { type: 'string', description: 'Name: the key in the map.' }
      return { ...entry, title: kind.name, properties: { name, ...fields }, required: ['name', ...required] }
    }
    case 'policies': {
      const fields = at(placement.path)['properties']
      const variants = Object.entries(isTree(fields) ? fields : {}).map(([field, schema]) =>
        policyVariant(kind, field, resolved(schema, configSchema)),
      )
      return {
        title: kind.name,
        description: `${kind.doc} The id is the name of the field.`,
        anyOf: variants,
      }
    }
    case 'settings': {
      const fields = at(placement.path)['properties']
      const own = Object.entries(isTree(fields) ? fields : {}).filter(([field]) =>
        placement.fields.includes(field),
      )
      return {
        title: kind.name,
        description: kind.doc,
        type: 'object',
        properties: Object.fromEntries(own),
        additionalProperties: false,
      }
    }
    case 'catalog': {
      const inline = at([...placement.path, 'items', 'inline'])
      return {
        title: kind.name,
        description: kind.doc,
        type: 'object',
        properties: Object.fromEntries(placement.fields.map((field) => [field, inline])),
        additionalProperties: false,
      }
    }
  }
}

function policyVariant(kind: Kind, field: string, variant: Json): Json {
  if (!isKeyPolicy(kind, field) || !isTree(variant['properties'])) return { title: field, ...variant }
  const { keys: _, ...rest } = variant['properties']
  const required = Array.isArray(variant['required'])
    ? variant['required'].filter((name) => name !== 'keys')
    : []
  return { title: field, ...variant, properties: rest, required }
}

/** The schema at a path of the configuration: through `properties`, except for keywords of JSON Schema. */
function schemaAt(config: object, path: readonly string[]): Json {
  let here = resolved(config, config)
  for (const step of path) {
    const isWord = step === 'items' || step === 'additionalProperties'
    here = resolved(valueAt(here, isWord ? [step] : ['properties', step]), config)
  }
  return here
}

function resolved(schema: unknown, config: object): Json {
  const reference = valueAt(schema, ['$ref'])
  if (typeof reference !== 'string') return isTree(schema) ? schema : {}
  const name = reference.slice(reference.lastIndexOf('/') + 1 + definitionPrefix.length)
  return resolved(valueAt(config, ['definitions', name]), config)
}

function envelope(value: Json): Json {
  const time = { type: 'string', format: 'date-time', description: 'Hybrid mode only.' }
  return {
    type: 'object',
    required: ['kind', 'id', 'value'],
    properties: {
      kind: { enum: kinds.map(({ name }) => name) },
      id: { type: 'string', format: 'uuid' },
      name: { type: 'string', description: 'Name of the field. Policies only.' },
      value,
      revision: { type: 'integer', minimum: 1, description: 'Increases with each update. Hybrid mode only.' },
      createdAt: time,
      updatedAt: time,
      shadowed: { const: true, description: 'The file has the same entry, so this record is not active.' },
    },
  }
}

function withValue(value: Json): Json {
  return { type: 'object', required: ['value'], properties: { value } }
}

function listResponses(item: Json): Json {
  return responses({
    type: 'object',
    properties: {
      resources: { type: 'array', items: item },
      nextCursor: { type: 'string', description: '`cursor` of the next page, if there are more records.' },
    },
  })
}

const queryParameters: Json = {
  import: {
    name: 'import',
    in: 'query',
    required: true,
    description: 'Required for an import with ids.',
    schema: { const: true },
  },
  reveal: {
    name: 'reveal',
    in: 'query',
    description: 'Returns secrets, which are otherwise `***`. Each read is logged.',
    schema: { type: 'boolean', default: false },
  },
  limit: {
    name: 'limit',
    in: 'query',
    description: 'Maximum number of records. Default: all.',
    schema: { type: 'integer', minimum: 1, maximum: 1000 },
  },
  cursor: {
    name: 'cursor',
    in: 'query',
    description: '`nextCursor` of the previous page.',
    schema: { type: 'string' },
  },
  name: {
    name: 'name',
    in: 'query',
    description: 'Only records of this name. Virtual keys: `metadata.name`.',
    schema: { type: 'string' },
  },
  metadata: {
    name: 'metadata.<field>',
    in: 'query',
    description: 'Only virtual keys with this value of a metadata field, as in `metadata.group=search`.',
    schema: { type: 'string' },
  },
}

const listParameters = ['limit', 'cursor', 'name', 'metadata', 'reveal'].map(parameter)

function parameter(name: string): Json {
  return { $ref: `#/components/parameters/${name}` }
}

function schemaName({ name }: Kind): string {
  return name.replaceAll('.', '_')
}
