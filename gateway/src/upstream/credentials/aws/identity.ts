import { createHash } from 'node:crypto'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Caller } from '../caller.ts'
import { unavailable } from '../cloud/fetch-token.ts'
import { createTokenCache, type TimedToken } from '../token-cache.ts'
import type { AwsAuthConfig } from './config.ts'
import type { IdentityOptions, RequestKeys } from './keys.ts'
import { compileContainer, compileInstance } from './metadata.ts'
import { compileProcess } from './process.ts'
import { type Profile, profileIn, readProfiles } from './profile.ts'
import { compileSession, type RoleSession } from './session.ts'
import type { AwsCredentials } from './sigv4.ts'
import { compileSso, isSsoProfile } from './sso.ts'
import { compileRole, compileWebIdentity } from './token-service.ts'

/** The keys of an identity, which may depend on the client. */
type CredentialsOf = (caller: Caller) => AwsCredentials | Promise<AwsCredentials>

export type Identity = {
  readonly credentialsOf: CredentialsOf
  /** Reports that a service has refused the keys of a client. */
  refused(caller: Caller): void
  /** Region of the environment or the profile. */
  readonly region: string | undefined
}

/** Keys, or a request for temporary ones. */
type KeySource =
  | { readonly kind: 'keys'; readonly keys: AwsCredentials }
  | { readonly kind: 'request'; readonly request: RequestKeys }

/** Sessions of a role with different names or tags. */
const maxSessions = 4_096

/**
 * Compiles the identity of the gateway at AWS. Without keys, it is chosen once by the environment, in the
 * order of AWS's SDKs. Throws for unreadable files and incomplete profiles.
 */
export function compileIdentity(config: AwsAuthConfig, node: object, context: CompileContext): Identity {
  const { environment } = context
  const { accessKeyId, secretAccessKey, sessionToken, assumeRole } = config
  const hasKeys = accessKeyId !== undefined && secretAccessKey !== undefined
  const profile = hasKeys ? undefined : profileOf(context)
  const region =
    environment['AWS_REGION'] || environment['AWS_DEFAULT_REGION'] || profile?.settings.get('region')
  const options = { node, context, region: config.region ?? region }
  const source: KeySource = hasKeys
    ? { kind: 'keys', keys: { accessKeyId, secretAccessKey, sessionToken } }
    : implicitSource(profile, options)
  // Keys survive reloads, and equal identities share them.
  const identity = JSON.stringify([config, context.egress.of(node).key])
  const name = `backends/aws/${createHash('sha256').update(identity).digest('base64url')}`
  const cached = context.retained(name, () =>
    createTokenCache<AwsCredentials>(assumeRole === undefined ? 1 : maxSessions, context.clock),
  )
  if (assumeRole === undefined) {
    if (source.kind === 'keys') return { region, refused() {}, credentialsOf: () => source.keys }
    return {
      region,
      refused: () => cached.refuse(''),
      credentialsOf: () => cached.get('', source.request),
    }
  }
  const own = context.retained(`${name}/source`, () => createTokenCache<AwsCredentials>(1, context.clock))
  const sourceKeys = () => (source.kind === 'keys' ? source.keys : own.get('', source.request))
  const sessionOf = compileSession(assumeRole)
  const requestRole = compileRole(assumeRole.roleArn, options)
  return {
    region,
    refused: ({ facts }) => cached.refuse(keyOf(sessionOf(facts))),
    credentialsOf({ facts }) {
      const session = sessionOf(facts)
      return cached.get(keyOf(session), async () => requestRole(await sourceKeys(), session))
    },
  }
}

const keyOf = (session: RoleSession) => JSON.stringify(session)

/** The order of AWS's SDKs: variables, shared profile, web identity, container, instance. */
function implicitSource(profile: Profile | undefined, options: IdentityOptions): KeySource {
  const { environment } = options.context
  const ofVariables = keysOfVariables(environment)
  if (ofVariables !== undefined) return { kind: 'keys', keys: ofVariables }
  if (profile !== undefined) return sourceOfProfile(profile, options, 0)
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: roleArn } = environment
  if (file && roleArn) {
    const sessionName = environment['AWS_ROLE_SESSION_NAME'] || 'tollgate'
    return { kind: 'request', request: compileWebIdentity({ file, roleArn, sessionName }, options) }
  }
  return metadataSource(options)
}

function metadataSource(options: IdentityOptions): KeySource {
  const { environment } = options.context
  const isContainer =
    environment['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] || environment['AWS_CONTAINER_CREDENTIALS_FULL_URI']
  if (isContainer) return { kind: 'request', request: compileContainer(options) }
  if (environment['AWS_EC2_METADATA_DISABLED']?.toLowerCase() === 'true')
    throw new Error(
      'aws: no identity: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or accessKeyId and secretAccessKey in the configuration',
    )
  return { kind: 'request', request: compileInstance(options) }
}

function keysOfVariables(environment: CompileContext['environment']): AwsCredentials | undefined {
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = environment
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: sessionToken || undefined }
}

/** The selected profile of the shared files; undefined if variables take precedence or there is none. */
function profileOf(context: CompileContext): Profile | undefined {
  const { environment } = context
  if (keysOfVariables(environment) !== undefined) return undefined
  const profiles = readProfiles(context)
  const selected = environment['AWS_PROFILE']
  if (selected) return profileIn(profiles, selected)
  return profiles.has('default') ? profileIn(profiles, 'default') : undefined
}

const maxDepth = 4

/** https://docs.aws.amazon.com/sdkref/latest/guide/feature-assume-role-credentials.html */
function sourceOfProfile(profile: Profile, options: IdentityOptions, depth: number): KeySource {
  const { name, settings, profiles } = profile
  const at = `aws: profile "${name}"`
  if (depth > maxDepth) throw new Error(`${at}: source_profile refers to itself`)
  const [accessKeyId, secretAccessKey] = [
    settings.get('aws_access_key_id'),
    settings.get('aws_secret_access_key'),
  ]
  const roleArn = settings.get('role_arn')
  const sourceProfile = settings.get('source_profile')
  // A profile may name itself as the source of its role: its keys are then the source.
  if (roleArn === undefined || (sourceProfile === name && depth > 0)) {
    if (accessKeyId && secretAccessKey)
      return { kind: 'request', request: async () => keysOfProfile(name, options.context) }
    const command = settings.get('credential_process')
    if (command !== undefined)
      return { kind: 'request', request: compileProcess(command, name, options.context) }
    if (isSsoProfile(profile)) return { kind: 'request', request: compileSso(profile, options) }
    if (settings.has('login_session'))
      throw new Error(
        `${at}: login_session is not supported: use keys, role_arn, credential_process, sso_session or the identity of the machine`,
      )
    return metadataSource(options)
  }
  const sessionName = settings.get('role_session_name') ?? 'tollgate'
  const file = settings.get('web_identity_token_file')
  if (file !== undefined)
    return { kind: 'request', request: compileWebIdentity({ file, roleArn, sessionName }, options) }
  const source =
    sourceProfile === undefined
      ? namedSource(settings.get('credential_source'), at, options)
      : sourceOfProfile(profileIn(profiles, sourceProfile), options, depth + 1)
  const requestRole = compileRole(roleArn, options)
  const session = { name: sessionName, tags: [] }
  return {
    kind: 'request',
    request: async () => {
      const keys = source.kind === 'keys' ? source.keys : (await source.request()).token
      return requestRole(keys, session)
    },
  }
}

/** Lifetime of keys of a profile: other programs replace them in its file. */
const profileLifetimeMs = 300_000

function keysOfProfile(name: string, context: CompileContext): TimedToken<AwsCredentials> {
  const settings = readProfiles(context).get(name)
  const accessKeyId = settings?.get('aws_access_key_id')
  const secretAccessKey = settings?.get('aws_secret_access_key')
  if (!accessKeyId || !secretAccessKey) throw unavailable(`aws: profile "${name}" has no keys any more`)
  const sessionToken = settings?.get('aws_session_token')
  return { token: { accessKeyId, secretAccessKey, sessionToken }, lifetimeMs: profileLifetimeMs }
}

function namedSource(name: string | undefined, at: string, options: IdentityOptions): KeySource {
  switch (name) {
    case 'Environment': {
      const keys = keysOfVariables(options.context.environment)
      if (keys === undefined) throw new Error(`${at}: AWS_ACCESS_KEY_ID is not set in the environment`)
      return { kind: 'keys', keys }
    }
    case 'Ec2InstanceMetadata':
      return { kind: 'request', request: compileInstance(options) }
    case 'EcsContainer':
      return { kind: 'request', request: compileContainer(options) }
    default:
      throw new Error(`${at}: role_arn requires source_profile, credential_source or web_identity_token_file`)
  }
}
