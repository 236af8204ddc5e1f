import { type OpenApiPart, queryParameters, responses } from '../../resources/api/openapi-part.ts'

/** Query parameters of the list of prices. */
export const costQueryParameters = ['search', 'provider', 'source', 'models', 'limit', 'cursor'] as const

const text = { type: 'string' }
const count = { type: 'integer' }

const descriptions: Readonly<Record<(typeof costQueryParameters)[number], string>> = {
  search: 'Part of the provider or model, in any case.',
  provider: 'Kind of the provider, such as `openai`.',
  source: 'Only models with a price from this catalog: `base`, `custom`, `file` or `inline`.',
  models: 'Only these models: at most 200 of the form `provider/model`, separated by commas.',
  limit: 'Maximum number of models, from 1 to 500; default 100.',
  cursor: '`nextCursor` of the previous page.',
}

/** OpenAPI of the list of prices. */
export const costsOpenApi: OpenApiPart = {
  paths: {
    '/api/costs': {
      get: {
        summary: 'Effective prices of models, by provider and model, with the catalog of each price.',
        parameters: queryParameters(descriptions),
        responses: responses({
          type: 'object',
          properties: {
            catalogs: {
              type: 'array',
              description: 'Catalogs of the active configuration; later ones take precedence.',
              items: {
                type: 'object',
                properties: {
                  source: { enum: ['base', 'custom', 'file', 'inline'] },
                  file: text,
                  models: { ...count, description: 'Models with a price from this catalog.' },
                },
              },
            },
            providers: { type: 'array', items: text },
            models: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  provider: text,
                  model: text,
                  rates: { type: 'object', description: 'US dollars per million tokens, as text.' },
                  tiers: { type: 'array', items: { type: 'object' } },
                  limits: { type: 'object' },
                  tags: { type: 'array', items: text },
                  sources: {
                    type: 'object',
                    description: 'Index in `catalogs` of each price and of `tiers`.',
                  },
                },
              },
            },
            total: { ...count, description: 'Number of models that match.' },
            nextCursor: text,
          },
        }),
      },
    },
  },
}
