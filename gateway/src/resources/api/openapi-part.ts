/** Plain JSON of an OpenAPI document. */
export type Json = Record<string, unknown>

/** Part of the OpenAPI document of the admin API: the paths of an endpoint, and the schemas they refer to. */
export type OpenApiPart = {
  /** Path items by path. */
  readonly paths: Readonly<Record<string, Json>>
  /** Schemas by name, for `ref`. */
  readonly schemas?: Readonly<Record<string, Json>>
}

/** Reference to a schema of the document. */
export function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

/** Responses of an operation: 200 with a JSON value of a schema, and refusals. */
export function responses(schema: Json): Json {
  return {
    '200': { description: 'Success.', content: { 'application/json': { schema } } },
    default: errorResponse,
  }
}

/** Refusals: a JSON string, or a problem document. */
export const errorResponse: Json = {
  description: 'Refusal.',
  content: {
    'application/json': { schema: ref('Error') },
    'application/problem+json': { schema: ref('Problem') },
  },
}

/** Optional query parameters with texts, by name. */
export function queryParameters(descriptions: Readonly<Record<string, string>>): Json[] {
  return Object.entries(descriptions).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string' },
  }))
}

/** Operation without parameters that returns an object. */
export function plainGet(summary: string): Json {
  return { summary, responses: responses({ type: 'object' }) }
}

/** Required JSON body of a schema. */
export function body(schema: Json): Json {
  return { required: true, content: { 'application/json': { schema } } }
}
