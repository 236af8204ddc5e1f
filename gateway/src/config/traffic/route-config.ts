import { forwardingPolicyFields, routeBackendsSchema } from '../../backends/http/config.ts'
import { llmBackendSchema, llmPolicyFields, llmPolicyMeta } from '../../backends/llm/config/backend-config.ts'
import { mcpBackendSchema } from '../../backends/mcp/config.ts'
import { guardrailsSchema } from '../../policies/guardrails/config.ts'
import { appliesToSchema } from '../../policies/rate-limit/local-config.ts'
import { backendScopeFields, routePolicyFields } from '../../policies/registry/schema.ts'
import {
  boolean,
  exactlyOne,
  type Infer,
  integer,
  list,
  name,
  object,
  optional,
  string,
} from '../../schema/dsl.ts'
import { gatewayReferences } from '../../schema/gateway-references.ts'
import { sessionAffinitySchema } from '../../upstream/affinity/affinity.ts'
import { backendPolicyFields, namedBackendsSchema } from '../../upstream/config.ts'

const valueMatch = exactlyOne(
  {
    exact: string({ doc: 'The whole value.' }),
    regex: string({ doc: 'RE2 pattern of the whole value.' }),
  },
  {},
  { doc: 'The expected value.' },
)

const path = exactlyOne(
  {
    exact: name({ doc: 'The whole path.', example: '/health' }),
    pathPrefix: name({
      doc: 'Its first segments: `/api` matches `/api` and `/api/x`, not `/apis`.',
      example: '/api',
    }),
    regex: name({ doc: 'RE2 pattern of the whole path.', example: '/v[0-9]+/items' }),
  },
  {
    rank: optional(
      integer(
        {
          doc: 'Length by which a `regex` ranks among prefixes.',
          default: 'the length of the pattern',
          advanced: true,
        },
        { min: 1, max: 65_536 },
      ),
    ),
  },
  {
    doc: 'The path, normalised: no dot segments, no empty segments. A trailing slash is ignored by `pathPrefix`, and part of the path for `exact` and `regex`.',
  },
)

const match = object(
  {
    path: optional(path),
    method: optional(name({ doc: 'The method.', example: 'GET' })),
    headers: optional(
      list(
        object(
          {
            name: name({ doc: 'Name of a request header, in any case.', example: 'x-team' }),
            value: valueMatch,
          },
          { doc: 'One header.' },
        ),
        { doc: 'Headers that must all match.' },
      ),
    ),
    query: optional(
      list(
        object(
          { name: name({ doc: 'Name of a query parameter.' }), value: valueMatch },
          { doc: 'One parameter.' },
        ),
        { doc: 'Query parameters that must all match; of repeated ones the first counts.' },
      ),
    ),
  },
  { doc: 'Conditions that must all match.' },
)

/** `policies.ai` of routes and backends. */
const llmPolicy = object({ ...llmPolicyFields, promptGuard: optional(guardrailsSchema) }, llmPolicyMeta)

/** `routes[].policies.ai`. */
const routeLlmPolicy = object(
  { ...llmPolicyFields, promptGuard: optional(guardrailsSchema), appliesTo: optional(appliesToSchema) },
  llmPolicyMeta,
)

const kindsOfBackends = { mcp: mcpBackendSchema, ai: llmBackendSchema }

const policiesOfBackend = { doc: 'Policies of connections and requests to the backend.' }

/** `backends[].policies`. */
const namedPolicies = object(
  { ...backendPolicyFields, ...backendScopeFields, sessionAffinity: optional(sessionAffinitySchema) },
  policiesOfBackend,
)

/** `routes[].backends[].policies`. */
const entryPolicies = object(
  {
    ...backendPolicyFields,
    ...backendScopeFields,
    sessionAffinity: optional(sessionAffinitySchema),
    ai: optional(llmPolicy),
  },
  policiesOfBackend,
)

/** The `backends` section. */
export const backendsSchema = namedBackendsSchema({ ...kindsOfBackends, policies: namedPolicies })

/** `routes[].policies`: policies of requests, and of forwarding. */
const policies = object(
  {
    ...routePolicyFields,
    ...forwardingPolicyFields,
    backendTLS: backendPolicyFields.backendTLS,
    backendAuth: backendPolicyFields.backendAuth,
    backendTunnel: backendPolicyFields.backendTunnel,
    ai: optional(routeLlmPolicy),
  },
  { doc: 'Policies of the requests of the route.' },
)

const routeFields = {
  name: optional(
    name({
      doc: 'Name in logs and metrics, and identity in the config API.',
      default: 'route and its number',
    }),
  ),
  hostnames: optional(
    list(name({ doc: 'Exact, or `*.example.com` for any name below it.' }), {
      doc: 'Hosts the route is for.',
      default: 'all',
    }),
  ),
  matches: optional(
    list(match, {
      doc: 'Requests the route is for; any match suffices. Between routes the most specific wins: host, exact path, longest prefix or regular expression, method, number of headers, number of query parameters, order.',
      default: 'all paths',
    }),
  ),
  allowAmbiguousPaths: optional(
    boolean({
      doc: 'Forwards paths that a backend may read in more than one way: with `%2F`, `%5C`, `%00`, escapes of escapes or `;` parameters whose decoded form has dot segments, empty segments, or belongs to another route. Rules then see only the path as sent.',
      default: false,
    }),
  ),
  allowClientHeaders: optional(
    list(name({ doc: 'Name of a header, in any case.', example: 'x-http-method-override' }), {
      doc: 'Headers of clients that backends of type `host` receive although they are withheld by default: other methods and paths for the request, statements about the address of the client, and names with an underscore.',
      default: 'none',
    }),
  ),
  policies: optional(policies),
  backends: optional(routeBackendsSchema({ ...kindsOfBackends, policies: entryPolicies })),
}

export const routeSchema = object(
  { ...routeFields, gateways: optional(gatewayReferences) },
  { doc: 'Requests that go to the same place under the same policies.' },
)

const routeGroup = object(
  {
    name: name({ doc: 'Name of the group, for `routeGroup` of backends.', example: 'orders' }),
    routes: list(
      object(routeFields, {
        doc: 'A route of the group. It receives requests that match it and the route that refers to the group, with the policies of both; its own take precedence.',
      }),
      { doc: 'Routes of the group.' },
    ),
  },
  { doc: 'Routes that other routes refer to.' },
)

export const routeGroupsSchema = list(routeGroup, {
  doc: 'Groups of routes: a route with `routeGroup` as its backend delegates its requests to them.',
})

export type RouteGroupConfig = Infer<typeof routeGroup>

export const routesSchema = list(routeSchema, { doc: 'Where HTTP requests on gateways go.' })

export type RouteConfig = Infer<typeof routeSchema>
export type RouteMatchConfig = Infer<typeof match>
export type RouteBackendConfig = NonNullable<RouteConfig['backends']>[number]
export type NamedBackendConfig = Infer<typeof backendsSchema>[number]
