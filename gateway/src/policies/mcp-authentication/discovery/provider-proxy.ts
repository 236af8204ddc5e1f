import { fetchDocument } from '../../../identity/jwt/fetch-document.ts'
import type { ServerMetadata } from '../../../identity/provider/server-metadata.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { Gauge } from '../../../lib/planes/gauge.ts'
import { readAll } from '../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Reply, Send } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { jsonReply, providerUnavailable } from '../json-reply.ts'
import type { ProviderProxy } from './discovery.ts'

export type ProviderProxyOptions = {
  serverMetadata: ServerMetadata
  /** Client with a secret in the configuration of the gateway. */
  client: { id: string; secret: string } | undefined
  send: Send
  /** Requests to the provider in progress. */
  active: Gauge
}

const maxBytes = 64 * 1024
const timeoutMs = 10_000
/** Limit of concurrent requests to the provider: the token endpoint is public. */
const maxConcurrent = 32

/**
 * Creates a proxy of authorization and token requests that removes the `resource` parameter, which MCP
 * clients always send and some providers refuse.
 */
export function createProviderProxy(options: ProviderProxyOptions): ProviderProxy {
  const { serverMetadata, client, send, active } = options
  return {
    async authorize({ facts: { request } }) {
      const endpoint = endpointIn(await serverMetadata(), 'authorization_endpoint')
      if (endpoint === undefined) return providerUnavailable
      const parameters = withoutResource(request.query)
      const query = parameters.size === 0 ? '' : `${endpoint.includes('?') ? '&' : '?'}${parameters}`
      return {
        status: 302,
        headers: { location: endpoint + query, 'cache-control': 'no-store' },
        body: undefined,
      }
    },
    async token(exchange) {
      const url = endpointIn(await serverMetadata(), 'token_endpoint')
      if (url === undefined || !active.tryAdd(1, maxConcurrent)) return providerUnavailable
      try {
        const body = await tokenRequest(exchange, client)
        const headers = tokenHeaders(exchange.facts.request.headers)
        return await forwardTokenRequest(send, { url, headers, body })
      } finally {
        active.subtract(1)
      }
    },
  }
}

async function forwardTokenRequest(
  send: Send,
  request: { url: string; headers: Headers; body: string },
): Promise<Reply> {
  try {
    const { status, text } = await fetchDocument(send, { ...request, method: 'POST', maxBytes, timeoutMs })
    return jsonReply(status, text, { 'cache-control': 'no-store' })
  } catch {
    // Clients need the failure, not its cause.
    return providerUnavailable
  }
}

function withoutResource(query: string): URLSearchParams {
  const parameters = new URLSearchParams(query)
  parameters.delete('resource')
  return parameters
}

/** Grants with user consent. Others would grant the gateway's rights to any caller with the client id. */
const delegatedGrants: readonly (string | null)[] = ['authorization_code', 'refresh_token']

async function tokenRequest({ body }: Exchange, client: ProviderProxyOptions['client']): Promise<string> {
  const form = withoutResource((await readAll(body, maxBytes, 'request_too_large')).toString('utf8'))
  const isBare = !form.has('client_secret') && !form.has('client_assertion')
  if (
    client !== undefined &&
    isBare &&
    form.get('client_id') === client.id &&
    delegatedGrants.includes(form.get('grant_type'))
  ) {
    form.set('client_secret', client.secret)
  }
  return form.toString()
}

function tokenHeaders(headers: Headers): Headers {
  const authorization = firstHeader(headers, 'authorization')
  // Providers redeem codes of web pages only with an origin.
  const origin = firstHeader(headers, 'origin')
  return {
    'content-type': 'application/x-www-form-urlencoded',
    ...(authorization === undefined ? {} : { authorization }),
    ...(origin === undefined ? {} : { origin }),
  }
}

function endpointIn(metadata: JsonObject | undefined, name: string): string | undefined {
  const address = metadata?.[name]
  return typeof address === 'string' ? address : undefined
}
