import { GrpcError } from '../../net/grpc-client.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { callerOf } from '../../upstream/credentials/caller.ts'
import { compileGrpcService } from '../../upstream/grpc-service/grpc-service.ts'
import { compileCheckRequest } from './check-request.ts'
import { decodeDecision } from './check-response.ts'
import { defaultTimeoutMs, type ExtAuthzConfig } from './config.ts'
import { type Ask, ServiceFailure } from './service.ts'

/** A service as the policy calls it. */
export type CompiledService = { readonly key: string; readonly timeoutMs: number; readonly ask: Ask }

const checkMethod = '/envoy.service.auth.v3.Authorization/Check'

/** Compiles calls of `Check`. `variables` are the CEL variables of request heads. */
export function compileGrpcCheck(
  config: ExtAuthzConfig,
  context: CompileContext,
  variables: ReadonlySet<string>,
): CompiledService {
  const service = compileGrpcService(config, context)
  const call = service.method(checkMethod)
  const encode = compileCheckRequest(config, variables)
  return {
    key: service.key,
    timeoutMs: service.timeoutMs ?? defaultTimeoutMs,
    async ask(view, deadlineMs) {
      const metadata = service.authorize && (await service.authorize(callerOf(view.exchange)))
      const bytes = await call(encode(view), { deadlineMs, metadata, trace: view.exchange.trace }).catch(fail)
      return { decision: decodeDecision(bytes), isCacheable: true, bytes: bytes.byteLength }
    },
  }
}

/** DEADLINE_EXCEEDED or UNAVAILABLE; every other status is a response. */
function fail(error: unknown): never {
  if (!(error instanceof GrpcError)) throw error
  const isUnanswered = error.status === 4 || error.status === 14
  throw new ServiceFailure(`call failed with gRPC status ${error.status}`, { cause: error, isUnanswered })
}
