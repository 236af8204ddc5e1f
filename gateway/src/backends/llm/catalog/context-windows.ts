import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ModelCatalogConfig } from './config.ts'
import { mergeCatalogs } from './merge-catalogs.ts'

/**
 * Looks up the context window of a model, in tokens. `models` are candidate names at the provider, in order.
 */
export type ContextWindows = (provider: string, models: readonly string[]) => number | undefined

/** Compiles `limits.contextWindow` of `config.modelCatalog`. Throws as `compilePrices`. */
export function compileContextWindows(catalogs: ModelCatalogConfig, context: CompileContext): ContextWindows {
  return context.cached(catalogs, 'context windows', () => {
    const windows = new Map(
      [...mergeCatalogs(catalogs, context)].map(([provider, models]) => [
        provider,
        new Map(
          [...models].flatMap(([name, { model }]): [string, number][] => {
            const size = model.limits?.contextWindow
            return size === undefined ? [] : [[name, size]]
          }),
        ),
      ]),
    )
    return (provider, names) => {
      const sizes = windows.get(provider)
      if (sizes === undefined) return undefined
      for (const name of names) {
        const size = sizes.get(name)
        if (size !== undefined) return size
      }
      return undefined
    }
  })
}
