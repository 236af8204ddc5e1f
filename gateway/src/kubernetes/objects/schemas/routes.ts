import { integer, jsonObject, list, name, openObject, optional, string } from '../../../schema/dsl.ts'
import {
  backendReferenceFields,
  optionalFlag,
  optionalList,
  optionalNumber,
  optionalText,
  optionalTexts,
  parentReference,
  portNumber,
} from './fields.ts'

// Schemas of `spec` of routes; see gateways.ts.

/** `type` is `Exact` or `RegularExpression`. */
export const valueMatch = openObject(
  { name: name({ doc: 'Name.' }), type: optionalText('Type.'), value: string({ doc: 'Value.' }) },
  { doc: 'Match of a header or parameter.' },
)

const header = openObject(
  { name: name({ doc: 'Name.' }), value: string({ doc: 'Value.' }) },
  { doc: 'Header.' },
)

export const httpHeaderFilter = openObject(
  {
    set: optionalList(header, 'Headers to set.'),
    add: optionalList(header, 'Headers to add.'),
    remove: optionalTexts('Headers to remove.'),
  },
  { doc: 'Changes of headers.' },
)

/** `type` is `ReplaceFullPath` or `ReplacePrefixMatch`. */
export const pathModifier = openObject(
  {
    type: string({ doc: 'Type.' }),
    replaceFullPath: optionalText('Path.'),
    replacePrefixMatch: optionalText('Prefix.'),
  },
  { doc: 'Change of the path.' },
)

export const backendReference = openObject(backendReferenceFields, { doc: 'Backend.' })

const requestMirror = openObject(
  {
    backendRef: backendReference,
    percent: optionalNumber('Share in percent.', { min: 0, max: 100 }),
    fraction: optional(
      openObject(
        {
          numerator: integer({ doc: 'Numerator.' }, { min: 0 }),
          denominator: optionalNumber('Denominator.', { min: 1 }),
        },
        { doc: 'Share.' },
      ),
    ),
  },
  { doc: 'Mirror.' },
)

const requestRedirect = openObject(
  {
    scheme: optionalText('Scheme.'),
    hostname: optionalText('Host.'),
    path: optional(pathModifier),
    port: optional(portNumber('Port.')),
    statusCode: optionalNumber('Status.'),
  },
  { doc: 'Redirect.' },
)

const cors = openObject(
  {
    allowOrigins: optionalTexts('Origins.'),
    allowMethods: optionalTexts('Methods.'),
    allowHeaders: optionalTexts('Headers of requests.'),
    exposeHeaders: optionalTexts('Headers of responses.'),
    allowCredentials: optionalFlag('Credentials.'),
    /** In seconds. */
    maxAge: optionalNumber('Age of cached permissions.', { min: 0 }),
  },
  { doc: 'CORS.' },
)

/** A filter of an HTTPRoute or GRPCRoute; `type` names the field that is set. */
export const routeFilter = openObject(
  {
    type: name({ doc: 'Type.' }),
    requestHeaderModifier: optional(httpHeaderFilter),
    responseHeaderModifier: optional(httpHeaderFilter),
    requestMirror: optional(requestMirror),
    requestRedirect: optional(requestRedirect),
    urlRewrite: optional(
      openObject(
        { hostname: optionalText('Host.'), path: optional(pathModifier) },
        { doc: 'Rewrite of the URL.' },
      ),
    ),
    cors: optional(cors),
    extensionRef: optional(
      openObject(
        { group: string({ doc: 'API group.' }), kind: name({ doc: 'Kind.' }), name: name({ doc: 'Name.' }) },
        { doc: 'Extension.' },
      ),
    ),
  },
  { doc: 'Filter.' },
)

export const routeBackendReference = openObject(
  { ...backendReferenceFields, filters: optionalList(routeFilter, 'Filters.') },
  { doc: 'Backend.' },
)

export const httpRouteMatch = openObject(
  {
    path: optional(
      openObject({ type: optionalText('Type.'), value: optionalText('Path.') }, { doc: 'Path.' }),
    ),
    headers: optionalList(valueMatch, 'Headers.'),
    queryParams: optionalList(valueMatch, 'Query parameters.'),
    method: optionalText('Method.'),
  },
  { doc: 'Match.' },
)

export const httpRouteRule = openObject(
  {
    name: optionalText('Name.'),
    matches: optionalList(httpRouteMatch, 'Matches.'),
    filters: optionalList(routeFilter, 'Filters.'),
    backendRefs: optionalList(routeBackendReference, 'Backends.'),
    timeouts: optional(
      openObject(
        { request: optionalText('Of the request.'), backendRequest: optionalText('Of an attempt.') },
        { doc: 'Timeouts.' },
      ),
    ),
    /** Experimental channel. */
    retry: optional(
      openObject(
        {
          codes: optionalList(integer({ doc: 'Status.' }), 'Statuses.'),
          attempts: optionalNumber('Attempts.'),
          backoff: optionalText('Delay.'),
        },
        { doc: 'Retries.' },
      ),
    ),
    sessionPersistence: optional(jsonObject({ doc: 'Not supported.' })),
  },
  { doc: 'Rule.' },
)

const attachmentFields = {
  parentRefs: optionalList(parentReference, 'Parents.'),
  hostnames: optionalList(name({ doc: 'Host.' }), 'Hosts.'),
}

export const httpRouteSpec = openObject(
  { ...attachmentFields, rules: optionalList(httpRouteRule, 'Rules.') },
  { doc: 'Route.' },
)

const grpcMethodMatch = openObject(
  { type: optionalText('Type.'), service: optionalText('Service.'), method: optionalText('Method.') },
  { doc: 'Method.' },
)

export const grpcRouteRule = openObject(
  {
    name: optionalText('Name.'),
    matches: optionalList(
      openObject(
        { method: optional(grpcMethodMatch), headers: optionalList(valueMatch, 'Headers.') },
        { doc: 'Match.' },
      ),
      'Matches.',
    ),
    filters: optionalList(routeFilter, 'Filters.'),
    backendRefs: optionalList(routeBackendReference, 'Backends.'),
    sessionPersistence: optional(jsonObject({ doc: 'Not supported.' })),
  },
  { doc: 'Rule.' },
)

export const grpcRouteSpec = openObject(
  { ...attachmentFields, rules: optionalList(grpcRouteRule, 'Rules.') },
  { doc: 'Route.' },
)

const connectionRules = list(
  openObject(
    { name: optionalText('Name.'), backendRefs: optionalList(backendReference, 'Backends.') },
    { doc: 'Rule.' },
  ),
  { doc: 'Rules.' },
)

export const tlsRouteSpec = openObject({ ...attachmentFields, rules: connectionRules }, { doc: 'Route.' })

export const tcpRouteSpec = openObject(
  { parentRefs: attachmentFields.parentRefs, rules: connectionRules },
  { doc: 'Route.' },
)
