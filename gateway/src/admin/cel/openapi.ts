import { body, type OpenApiPart, plainGet, responses } from '../../resources/api/openapi-part.ts'
import { celScopes } from './scopes.ts'

const text = { type: 'string' }
const integer = { type: 'integer' }
const scope = { enum: celScopes.map(({ name }) => name), description: 'Place of the expression.' }
const position = { message: text, offset: integer, line: integer, column: integer }
const facts = { type: 'object', description: 'Values of variables by name.' }
const requestId = { ...text, description: 'Id of a request in the ledger.' }

/** OpenAPI of the endpoints of expressions. */
export const celOpenApi: OpenApiPart = {
  paths: {
    '/api/cel/variables': { get: plainGet('Variables of expressions by scope, and functions.') },
    '/api/cel/check': {
      post: {
        summary: 'Checks an expression: syntax, variables, members and functions.',
        requestBody: body({
          type: 'object',
          required: ['expression'],
          properties: {
            expression: text,
            scope,
            roots: { type: 'array', items: text, description: '`x-roots` of a schema, instead of a scope.' },
          },
        }),
        responses: responses({ type: 'object', properties: { ok: { type: 'boolean' }, ...position } }),
      },
    },
    '/api/cel/facts': {
      get: {
        summary: 'Sample facts of a scope, or those of a recorded request.',
        parameters: [
          { name: 'scope', in: 'query', schema: scope },
          { name: 'requestId', in: 'query', schema: requestId },
        ],
        responses: responses({
          type: 'object',
          properties: {
            facts,
            missing: {
              type: 'array',
              items: text,
              description: 'Variables that the ledger does not record.',
            },
          },
        }),
      },
    },
    '/api/cel/evaluate': {
      post: {
        summary: 'Evaluates an expression over facts. Changes nothing.',
        requestBody: body({
          type: 'object',
          required: ['expression'],
          properties: { expression: text, scope, facts, requestId },
        }),
        responses: responses({
          type: 'object',
          description: 'A value with its type, or an error.',
          properties: { value: {}, type: text, error: { type: 'object', properties: position } },
        }),
      },
    },
  },
}
