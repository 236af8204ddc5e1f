import { type Gateway, startGateway } from '../gateway.ts'
import { sqliteUrl } from '../resource-api.ts'
import { startVendor, type Vendor, vendorKey } from '../vendors/vendor.ts'
import { allRows, modelConfig, type ProviderRow } from './providers.ts'

export type Matrix = { gateway: Gateway; vendorOf(row: ProviderRow): Vendor }

/** US dollars for a million tokens of all models. */
export const rates = { input: 2, output: 10, cacheRead: 0.5 }

/** Starts one gateway with a model of every row, each with a vendor of its own, and a ledger. */
export async function startMatrix(): Promise<Matrix> {
  const vendors = new Map<ProviderRow, Vendor>()
  for (const row of allRows) vendors.set(row, await startVendor(row.label))
  const models = [...vendors].map(([row, vendor]) => modelConfig(row, vendor))
  const config = { database: { url: sqliteUrl() }, modelCatalog: [{ inline: catalog() }] }
  const gateway = await startGateway(
    { config, llm: { models } },
    {
      lifetime: 'file',
      env: { GH_COPILOT_TOKEN: vendorKey },
    },
  )
  return {
    gateway,
    vendorOf(row) {
      const vendor = vendors.get(row)
      if (vendor === undefined) throw new Error(`no vendor of ${row.label}`)
      return vendor
    },
  }
}

function catalog(): object {
  const providers: Record<string, { models: Record<string, object> }> = {}
  for (const { provider, model } of allRows) {
    providers[provider] ??= { models: {} }
    const { input, output, cacheRead } = rates
    const prices = { input: String(input), output: String(output), cacheRead: String(cacheRead) }
    providers[provider].models[model] = { rates: prices }
  }
  return { providers }
}
