import { kinds } from '../kinds.ts'
import { type Json, ref, responses } from './openapi-part.ts'

/** Paths of the history in the OpenAPI document. */
export function historyPaths(parameter: (name: string) => Json): Json {
  const id = parameter('historyId')
  return {
    '/api/config/history': {
      get: {
        summary: 'Changes through the API, latest first. Hybrid mode only.',
        parameters: Object.keys(historyParameters)
          .filter((name) => name !== 'historyId')
          .map(parameter),
        responses: responses({
          type: 'object',
          required: ['records'],
          properties: {
            records: { type: 'array', items: ref('RecordedChange') },
            nextCursor: { type: 'string', description: '`cursor` of the next page, which may be empty.' },
          },
        }),
      },
    },
    '/api/config/history/{historyId}': {
      parameters: [id],
      get: {
        summary: 'One change with its values and differences, secrets masked.',
        responses: responses(ref('RecordedChangeDetail')),
      },
    },
    '/api/config/history/{historyId}/revert': {
      parameters: [id],
      post: {
        summary: 'Restores the value of the record before the change. Checked like any other write.',
        parameters: [parameter('dryRun'), parameter('ifMatch')],
        responses: responses({
          anyOf: [
            {
              type: 'object',
              required: ['resources'],
              properties: { resources: { type: 'array', items: ref('Envelope') } },
            },
            {
              type: 'object',
              required: ['status'],
              properties: { status: { const: 'success' }, message: { type: 'string' } },
            },
          ],
        }),
      },
    },
  }
}

const time = { type: 'string', format: 'date-time' }
const dateOrTime = { anyOf: [{ type: 'string', format: 'date' }, time] }

const summary: Json = {
  id: { type: 'integer', minimum: 1 },
  at: time,
  operation: { enum: ['create', 'update', 'delete'] },
  origin: { enum: ['write', 'import', 'revert'], description: 'Kind of request.' },
  reverts: { type: 'integer', description: 'Id of the reverted change.' },
  kind: { enum: kinds.map(({ name }) => name) },
  resourceId: { type: 'string', format: 'uuid', description: 'Id of the changed record.' },
  name: { type: 'string', description: 'Name of the record. Virtual keys have none.' },
  revision: { type: 'integer', description: 'Revision after the change, or of the deleted record.' },
  who: {
    type: 'object',
    required: ['address'],
    properties: {
      principal: { type: 'string', description: 'Subject of the token, or name or id of the key.' },
      address: { type: 'string', description: 'Client address.' },
    },
  },
  requestId: { type: 'string', description: '`x-request-id` of the response to the change.' },
  fields: { type: 'array', items: { type: 'string' }, description: 'Changed members of the value.' },
}

const required = [
  'id',
  'at',
  'operation',
  'origin',
  'kind',
  'resourceId',
  'revision',
  'who',
  'requestId',
  'fields',
]

/** Schemas of the history. */
export const historySchemas: Json = {
  RecordedChange: { type: 'object', required, properties: summary },
  RecordedChangeDetail: {
    type: 'object',
    required: [...required, 'differences'],
    properties: {
      ...summary,
      before: { description: 'Value before the change; absent after a creation.' },
      after: { description: 'Value after the change; absent after a deletion.' },
      differences: {
        type: 'array',
        items: {
          type: 'object',
          required: ['path'],
          properties: {
            path: { type: 'string', description: 'JSON Pointer (RFC 6901) into the value.' },
            before: {},
            after: {},
          },
        },
      },
      currentRevision: { type: 'integer', description: 'Current revision of the record, for `If-Match`.' },
      unreadable: { type: 'string', description: 'Reason why a value is not shown.' },
    },
  },
}

/** Parameters of the history. */
export const historyParameters: Json = {
  historyId: {
    name: 'historyId',
    in: 'path',
    required: true,
    description: 'Id of a change.',
    schema: { type: 'integer', minimum: 1 },
  },
  historyKind: query('kind', 'Only changes of this kind of record.', { enum: kinds.map(({ name }) => name) }),
  historyResource: query('id', 'Only changes of this record: its id, or its name together with `kind`.'),
  historyWho: query('who', 'Only changes by this principal, or from this address.'),
  historyFrom: query('from', 'Only changes at or after this time, or this date in UTC.', dateOrTime),
  historyTo: query('to', 'Only changes before this time, or this date in UTC.', dateOrTime),
  historyText: query('text', 'Only changes with this text in their shown form, in any case.'),
  historyLimit: query('limit', 'Maximum number of changes.', {
    type: 'integer',
    minimum: 1,
    maximum: 500,
    default: 100,
  }),
  historyCursor: query('cursor', '`nextCursor` of the previous page.'),
}

function query(name: string, description: string, schema: Json = { type: 'string' }): Json {
  return { name, in: 'query', description, schema }
}
