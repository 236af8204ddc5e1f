import { isObjectEndpoint } from '../batches/object-path.ts'
import type { Target } from '../models/target.ts'
import { type ProviderCall, type ProviderPath, type ProviderPaths, pathsOf } from '../providers/provider.ts'
import { canonicalPath, type Endpoint, pathAfterVersion } from '../request/endpoints.ts'
import { namesOtherModel } from '../request/path-model.ts'

/** The path at the upstream of a path of the provider. */
export function pathAt({ fixedPath, basePath }: Target, path: ProviderPath): string {
  return fixedPath ?? (typeof path === 'string' ? basePath + path : path.absolute)
}

/**
 * The path of a call that the provider has. Prompts of the configuration cannot be added to a body of
 * `InvokeModel`, whose API depends on the model.
 */
export function nativePath(
  endpoint: Endpoint,
  paths: ProviderPaths,
  { rewrite }: Target,
): ProviderPath | undefined {
  const needsConverse = endpoint === 'invoke' && rewrite?.addsPrompts === true && paths.converse !== undefined
  return needsConverse ? undefined : paths[endpoint]
}

/**
 * The upstream path of an unknown call. Undefined for one of a known call, whose model, usage and texts would
 * then be unread, and for one that names another model.
 */
export function unreadPath(
  path: string,
  target: Target,
  call: ProviderCall & { readonly hasBody: boolean },
): string | undefined {
  const upstream = passthroughPath(path, target)
  const { provider, preservesPath } = target
  const plain = canonicalPath(upstream)
  if (namesOtherModel(plain, call.model)) return undefined
  // Explicit routes forward other calls unread.
  if (preservesPath) return provider.namesOtherModel?.(plain, call.model) ? undefined : upstream
  // A body that is not streamed may have the path of a streamed one.
  const calls = [true, false].flatMap((streaming) =>
    Object.entries(pathsOf(provider, { ...call, streaming })),
  )
  const isKnown = calls.some(
    ([endpoint, known]) =>
      // Without a body, those of files and batches are lists.
      (call.hasBody || !isObjectEndpoint(endpoint)) && canonicalPath(pathAt(target, known)) === plain,
  )
  return isKnown || provider.namesOtherModel?.(plain, call.model) ? undefined : upstream
}

/**
 * The upstream path of a passthrough call: the client's path, or its part after the version below the base
 * address.
 */
export function passthroughPath(path: string, { provider, basePath, preservesPath }: Target): string {
  if (preservesPath) return path
  return basePath + (provider.passthroughPrefix ?? '') + pathAfterVersion(path)
}
