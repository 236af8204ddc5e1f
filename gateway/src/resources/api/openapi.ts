import { isTree } from '../hybrid/overlay.ts'
import { type Kind, kinds } from '../kinds.ts'
import { historyParameters, historyPaths, historySchemas } from './history-openapi.ts'
import { recordSchema } from './kind-schema.ts'
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
      '/api/config/schema/{kind}': {
        get: {
          summary: 'JSON Schema of one record of a kind, with the definitions that it refers to.',
          parameters: [
            { name: 'kind', in: 'path', required: true, schema: { enum: kinds.map(({ name }) => name) } },
            {
              name: 'name',
              in: 'query',
              description:
                'Field of a policy. Without it, the schema of a policies kind is that of an object with all policies.',
              schema: { type: 'string' },
            },
          ],
          responses: responses({ type: 'object' }),
        },
      },
      '/api/config/file': filePath,
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
        ...Object.fromEntries(
          kinds.map((kind) => [schemaName(kind), relocated(recordSchema(kind, configSchema))]),
        ),
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
          description: 'Expected revision of the record, in quotes.',
          schema: { type: 'string' },
        },
      },
    },
  }
}

/** Path item of the configuration file as a text. */
const filePath: Json = {
  get: {
    summary: 'The configuration file as a text, with secrets in clear. Each read is logged.',
    responses: responses({
      type: 'object',
      properties: {
        text: { type: 'string' },
        revision: { type: 'string' },
        path: { type: 'string' },
        readOnly: { type: 'boolean', description: 'Whether only dry runs are accepted.' },
        reason: { type: 'string' },
      },
    }),
  },
  put: {
    summary: 'Replaces the text of the configuration file. Nothing is written if it has mistakes.',
    parameters: [parameter('dryRun'), parameter('ifMatch')],
    requestBody: body({ type: 'object', required: ['text'], properties: { text: { type: 'string' } } }),
    responses: responses({
      type: 'object',
      properties: {
        mistakes: {
          type: 'array',
          description: 'Dry runs only; otherwise mistakes are a refusal (422).',
          items: {
            type: 'object',
            properties: {
              message: { type: 'string' },
              line: { type: 'integer' },
              column: { type: 'integer' },
              path: { type: 'string' },
            },
          },
        },
        changes: {
          type: 'array',
          description: 'Changed parts, with secrets masked.',
          items: { type: 'object', properties: { path: { type: 'string' }, before: {}, after: {} } },
        },
        needsRestart: { type: 'boolean', description: 'Whether a change takes effect after a restart only.' },
        revision: { type: 'string' },
      },
    }),
  },
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
      parameters: ['dryRun', 'reveal', 'retain', 'ifMatch'].map(parameter),
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
      revision: {
        description:
          'Of the database a number that increases with each update. Of the file a text that depends on the value; only in lists with origins and in reads of one record.',
        anyOf: [{ type: 'integer', minimum: 1 }, { type: 'string' }],
      },
      createdAt: time,
      updatedAt: time,
      shadowed: { const: true, description: 'The file has the same entry, so this record is not active.' },
      origin: {
        type: 'object',
        description: 'Place of the record. Only in lists with origins and in reads of one record.',
        required: ['kind'],
        properties: {
          kind: { enum: ['file', 'database', 'object'] },
          line: { type: 'integer', minimum: 1, description: 'Line of the configuration file.' },
          object: { type: 'string', description: '`<kind>/<namespace>/<name>` in a cluster.' },
        },
      },
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
      total: { type: 'integer', description: 'Records on all pages. Only in lists with origins.' },
    },
  })
}

const queryParameters: Json = {
  search: {
    name: 'search',
    in: 'query',
    description: 'Part of the id, the name or a text of the value, in any case. Secrets are not searched.',
    schema: { type: 'string', maxLength: 200 },
  },
  sort: {
    name: 'sort',
    in: 'query',
    description:
      'Field: `id`, `name`, `createdAt`, `updatedAt` or a path inside the value, with a leading `-` for descending order.',
    schema: { type: 'string', default: 'name' },
  },
  origin: {
    name: 'origin',
    in: 'query',
    description:
      'Records of the file, of the database, or of both. This, `search` or `sort` selects the list with `origin`, `revision` and `total`, which includes the file; without them only records of the database are listed.',
    schema: { enum: ['all', 'file', 'database'] },
  },
  retain: {
    name: 'retain',
    in: 'query',
    description:
      'Retains the stored value of every part that equals the value of a read: masked secrets, and references to the environment.',
    schema: { type: 'boolean', default: false },
  },
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
    description: 'Maximum number of records. Default: all; 100 with `search`, `sort` or `origin`.',
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

const listParameters = [...['search', 'sort', 'origin', 'limit', 'cursor', 'name', 'metadata', 'reveal']].map(
  parameter,
)

function parameter(name: string): Json {
  return { $ref: `#/components/parameters/${name}` }
}

function schemaName({ name }: Kind): string {
  return name.replaceAll('.', '_')
}
