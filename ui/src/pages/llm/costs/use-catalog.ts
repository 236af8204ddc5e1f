import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { ConfigRecord } from '../../../api/resources.ts'
import type { Whoami } from '../../../api/whoami.ts'
import { findRecord } from '../../../save/requests.ts'
import type { CatalogRecord } from './catalog-edit.ts'

type Found = { readonly record: ConfigRecord<CatalogRecord> | undefined }

/** The record with the base and the custom catalog; without one before the first price. */
export function useCatalogRecord(): UseQueryResult<Found> {
  return useQuery({
    queryKey: ['record', 'modelCatalog', 'default', 'optional'],
    queryFn: async (): Promise<Found> => ({
      record: (await findRecord('modelCatalog', 'default')) as ConfigRecord<CatalogRecord> | undefined,
    }),
  })
}

/** The record that a change replaces. With a database, catalogs of the file stay as they are. */
export function ownRecord(
  { record }: Found,
  { storage }: Pick<Whoami, 'storage'>,
): ConfigRecord<CatalogRecord> | undefined {
  return storage.mode === 'hybrid' && record?.origin?.kind === 'file' ? undefined : record
}
