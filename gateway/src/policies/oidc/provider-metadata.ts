import type { JwksUri } from '../../identity/jwt/key-source.ts'
import { discoveredJwksUri } from '../../identity/provider/discovered-jwks-uri.ts'
import {
  createServerMetadata,
  openIdConfigurationUrl,
  type ServerMetadata,
  withoutTrailingSlashes,
} from '../../identity/provider/server-metadata.ts'
import { type JsonObject, parseJsonObject } from '../../lib/json/json.ts'
import type { EgressPolicy } from '../../net/egress/egress.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { isHttpUrl } from '../../schema/dsl.ts'
import { sendUnder } from '../../upstream/egress.ts'
import type { OidcConfig } from './config.ts'

/** Metadata of the provider, configured or discovered. */
export type LoginMetadata = {
  serverMetadata: ServerMetadata
  /** Address of the keys if the configuration has none. */
  jwksUri: JwksUri
  /** Egress policy of its endpoints. */
  egress: EgressPolicy
}

/** Compiles the metadata. Discovered metadata is fetched with the first login, for all data planes. */
export function compileMetadata(config: OidcConfig, context: CompileContext): LoginMetadata {
  const { issuer } = config
  const { egress, log } = context
  const local = localMetadata(config, context)
  const serverMetadata = local === undefined ? discovered(config, context) : async () => local
  const fallbackUrl = `${withoutTrailingSlashes(issuer)}/.well-known/jwks.json`
  return {
    serverMetadata,
    jwksUri: discoveredJwksUri({ issuer, serverMetadata, fallbackUrl, log }),
    // URLs of a fetched document are not those of the configuration.
    egress: local === undefined ? egress.document : egress.of(config),
  }
}

/** Metadata of the configuration or its file; undefined if it is fetched. */
function localMetadata(config: OidcConfig, { readFile }: CompileContext): JsonObject | undefined {
  const { issuer, authorizationEndpoint, tokenEndpoint, userinfoEndpoint, endSessionEndpoint } = config
  if (authorizationEndpoint !== undefined && tokenEndpoint !== undefined) {
    return {
      issuer,
      authorization_endpoint: authorizationEndpoint,
      token_endpoint: tokenEndpoint,
      ...(userinfoEndpoint === undefined ? {} : { userinfo_endpoint: userinfoEndpoint }),
      ...(endSessionEndpoint === undefined ? {} : { end_session_endpoint: endSessionEndpoint }),
    }
  }
  const { discovery } = config
  if (discovery === undefined || (typeof discovery === 'string' && isHttpUrl(discovery))) return undefined
  if (typeof discovery === 'string') return parseJsonObject(discovery)
  if (discovery.inline !== undefined) return parseJsonObject(discovery.inline)
  if (discovery.file === undefined) return undefined
  const metadata = parseJsonObject(readFile(discovery.file))
  if (metadata === undefined)
    throw new Error(`${discovery.file} must be metadata of an OpenID provider (JSON)`)
  return metadata
}

function discovered(config: OidcConfig, context: CompileContext): ServerMetadata {
  const { discovery, issuer } = config
  const configured = typeof discovery === 'string' ? discovery : discovery?.url
  const url = configured ?? openIdConfigurationUrl(issuer)
  const egress = context.egress.of(config)
  const name = `oidc metadata: ${url} ${egress.key}`
  const send = sendUnder(egress, context.send)
  return context.retained(name, () => createServerMetadata(name, [url], { ...context, send }))
}
