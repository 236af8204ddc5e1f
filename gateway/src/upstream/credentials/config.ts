import {
  anyOfShapes,
  exactlyOne,
  filePath,
  type Infer,
  list,
  object,
  optional,
  type Schema,
  type SecretSource,
  secret,
  secretSource,
} from '../../schema/dsl.ts'
import { awsAuthSchema } from './aws/config.ts'
import { azureAuthSchema } from './azure/config.ts'
import { copilotAuthSchema } from './copilot/config.ts'
import { googleAuthSchema } from './google/config.ts'
import { crossAppAccessSchema, jwtSignSchema, tokenExchangeSchema } from './oauth-config.ts'
import { credentialPlace } from './place-config.ts'

const keyDoc = "The gateway's own credential at the backend."

const key = anyOfShapes(
  [
    secret({ doc: keyDoc, example: '$UPSTREAM_KEY' }),
    object(
      { file: filePath({ doc: 'Path of a file that contains the credential.', holds: 'credential' }) },
      { doc: 'Credential in a file.' },
    ),
    object(
      { value: secretSource({ doc: keyDoc, example: '$UPSTREAM_KEY' }), location: optional(credentialPlace) },
      { doc: 'Credential with its location.' },
    ),
  ],
  { doc: `${keyDoc} A text, \`{file: path}\`, or \`{value, location}\`.` },
)

const credentials = list(
  object(
    {
      location: credentialPlace,
      key: secretSource({ doc: 'The credential.', example: '$TENANT_KEY' }),
    },
    { doc: 'A further credential.' },
  ),
  { doc: 'Further credentials of the gateway, each at its own location.' },
  { min: 1, max: 16 },
)

const single = exactlyOne(
  {
    key,
    passthrough: object(
      { location: optional(credentialPlace) },
      { doc: 'Forwards the accepted credential of the client, which is otherwise withheld from backends.' },
    ),
    jwtSign: jwtSignSchema,
    oauthTokenExchange: tokenExchangeSchema,
    crossAppAccess: crossAppAccessSchema,
    aws: awsAuthSchema,
    azure: azureAuthSchema,
    gcp: googleAuthSchema,
    copilot: copilotAuthSchema,
  },
  { location: optional(credentialPlace), credentials: optional(credentials) },
  { doc: 'How the gateway authenticates to the backend.' },
)

type Single = Infer<typeof single>
type CredentialsOnly = { credentials: Infer<typeof credentials> } & {
  readonly [K in Exclude<keyof Single, 'credentials'>]?: undefined
}

export type BackendAuthConfig = Single | CredentialsOnly

/** Credentials for a backend. */
export const backendAuthSchema: Schema<BackendAuthConfig> = anyOfShapes(
  [single, object({ credentials }, { doc: 'Credentials at their own locations only.' })],
  { doc: 'How the gateway authenticates to the backend.' },
)

/** The key of `backendAuth`; undefined for other ways of authentication. */
export function keyOf({ key: configured }: BackendAuthConfig): SecretSource | undefined {
  return typeof configured === 'object' && 'value' in configured ? configured.value : configured
}

/** The places of a configuration that set the location, with their paths. */
export function placesOf(auth: BackendAuthConfig) {
  const { key: configured, passthrough, jwtSign, oauthTokenExchange, location } = auth
  const ofKey = typeof configured === 'object' && 'value' in configured ? configured.location : undefined
  const places = [
    { place: ofKey, path: ['key', 'location'] },
    { place: passthrough?.location, path: ['passthrough', 'location'] },
    { place: jwtSign?.location, path: ['jwtSign', 'location'] },
    {
      place: oauthTokenExchange?.authorizationLocation,
      path: ['oauthTokenExchange', 'authorizationLocation'],
    },
    { place: location, path: ['location'] },
  ]
  return places.flatMap(({ place, path }) => (place === undefined ? [] : [{ place, path }]))
}

/** The location of a credential; undefined for the default. */
export function placeOf(auth: BackendAuthConfig) {
  return placesOf(auth)[0]?.place
}
