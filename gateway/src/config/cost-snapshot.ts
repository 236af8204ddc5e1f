import { type CostPage, type CostQuery, listPrices } from '../backends/llm/catalog/price-list.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Config } from './schema.ts'

/** Reads a page of the effective prices of a configuration. */
export function readCostsOf(config: Config | undefined, context: CompileContext, query: CostQuery): CostPage {
  return listPrices(config?.config?.modelCatalog, context, query)
}
