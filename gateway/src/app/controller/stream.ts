import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createBackOff } from '../../kubernetes/client/back-off.ts'
import type { ApiClient } from '../../kubernetes/client/client.ts'
import { ApiError } from '../../kubernetes/client/requests/api-error.ts'
import { tokenReviewKind } from '../../kubernetes/client/requests/other-kinds.ts'
import { loadAuthority } from '../../kubernetes/controller/authority.ts'
import { proxyName } from '../../kubernetes/deployer/names.ts'
import type { Gateway } from '../../kubernetes/objects/gateway-api.ts'
import {
  type CertificateAuthority,
  issueServerCertificate,
  renewalTime,
} from '../../kubernetes/stream/certificates/authority.ts'
import type { ChannelPublisher } from '../../kubernetes/stream/server/publisher.ts'
import { openStreamServer } from '../../kubernetes/stream/server/server.ts'
import { createTokenReviews } from '../../kubernetes/stream/server/token-review.ts'
import { createCachedVerification } from '../../kubernetes/stream/server/verify-token.ts'
import type { HostPort } from '../../lib/address/host-port.ts'
import type { Clock } from '../../lib/clock.ts'
import { longestTimerMs } from '../../lib/duration.ts'
import { messageOf } from '../../lib/thrown.ts'
import type { Log } from '../../telemetry/log.ts'

const serviceName = 'tollgate-controller'
const authoritySecret = 'tollgate-controller-ca'
const retryTimes = { minMs: 200, maxMs: 5_000 }

/** URL of the stream at the Service of the controller. */
export function defaultStreamUrl(namespace: string): string {
  return `https://${serviceName}.${namespace}.svc:15012`
}

/** Reads or creates the authority; tries again until the API server permits it or the signal. */
export async function awaitAuthority(
  client: ApiClient,
  namespace: string,
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): Promise<CertificateAuthority> {
  const backOff = createBackOff(retryTimes, Math.random)
  for (;;) {
    try {
      return await loadAuthority(client, { namespace, name: authoritySecret }, toolsOf(clock))
    } catch (error) {
      log.warn({ namespace, secret: authoritySecret, error: messageOf(error) }, 'authority not available')
      await delay(backOff.next(error instanceof ApiError ? error : undefined), undefined, { signal })
    }
  }
}

export type ControllerStreamOptions = {
  readonly client: ApiClient
  readonly publisher: ChannelPublisher
  readonly authority: CertificateAuthority
  readonly namespace: string
  /** URL that proxies use; its host is in the certificate. */
  readonly url: string
  readonly listen: HostPort
  /** The Gateway of a key, for the name of its service account. */
  findGateway(key: string): Gateway | undefined
  readonly clock: Clock
  readonly log: Log
}

/** Opens the configuration stream, with certificates that are renewed in time. */
export async function openControllerStream(options: ControllerStreamOptions) {
  const { client, clock, log, findGateway } = options
  const verify = createCachedVerification({
    verify: createTokenReviews((review) => client.create(tokenReviewKind, review)),
    clock,
  })
  const issue = () => issueServerCertificate(options.authority, serverNames(options), toolsOf(clock))
  let certificate = issue()
  const server = await openStreamServer({
    ...options.listen,
    publisher: options.publisher,
    verify,
    // No service account has an empty name.
    serviceAccountOf(key) {
      const gateway = findGateway(key)
      return gateway === undefined ? '' : proxyName(gateway)
    },
    certificate,
    clock,
    log,
  })
  let timer = armRenewal()

  function armRenewal(): NodeJS.Timeout {
    const waitMs = Math.min(Math.max(0, renewalTime(certificate) - clock.now()), longestTimerMs)
    return setTimeout(renew, waitMs)
  }

  function renew(): void {
    if (clock.now() >= renewalTime(certificate)) {
      certificate = issue()
      server.useCertificate(certificate)
      log.info({}, 'certificate of the configuration stream renewed')
    }
    timer = armRenewal()
  }

  return {
    port: server.port,
    close() {
      clearTimeout(timer)
      return server.close()
    },
  }
}

function serverNames({ namespace, url }: ControllerStreamOptions): string[] {
  const service = `${serviceName}.${namespace}.svc`
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return [...new Set([service, `${service}.cluster.local`, serviceName, host])]
}

function toolsOf(clock: Clock) {
  return { now: clock.now(), randomBytes }
}
