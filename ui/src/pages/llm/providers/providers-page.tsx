import { type ConfigRecord, useRecords } from '../../../api/resources.ts'
import type { Column } from '../../../components/data/table.tsx'
import { Badge } from '../../../components/feedback/badge.tsx'
import { formatNumber } from '../../../format/number.ts'
import { isObject } from '../../../schema-form/model/value.ts'
import { ResourceList } from '../../resources/resource-list.tsx'
import type { ModelValue, ProviderValue } from '../models/model.ts'

/** Settings and credentials of providers that models share. */
export default function ProvidersPage() {
  const { data: models } = useRecords<ModelValue>('llm.model', { limit: 1_000 })
  const counts = new Map<string, number>()
  for (const { value } of models?.resources ?? []) {
    if (typeof value.provider === 'string') continue
    const { reference } = value.provider
    counts.set(reference, (counts.get(reference) ?? 0) + 1)
  }
  return (
    <ResourceList<ProviderValue>
      kind="llm.provider"
      title="Providers"
      about="Address and credential of a provider, shared by models. Stored credentials are never displayed."
      noun="provider"
      path="/llm/providers"
      empty={{
        text: 'A shared provider has the credential once, for any number of models.',
      }}
      columns={columnsOf(counts, models?.nextCursor === undefined)}
    />
  )
}

function columnsOf(
  counts: ReadonlyMap<string, number>,
  complete: boolean,
): readonly Column<ConfigRecord<ProviderValue>>[] {
  return [
    { id: 'kind', title: 'Kind', render: ({ value }) => <Badge>{value.provider}</Badge> },
    {
      id: 'address',
      title: 'Address',
      from: 'md',
      className: 'max-w-80 truncate font-mono text-xs text-ink-soft',
      render: ({ value }) => value.params?.baseUrl ?? 'of the provider',
    },
    {
      id: 'credential',
      title: 'Credential',
      from: 'sm',
      render: ({ value }) => <Credential params={value.params} />,
    },
    {
      id: 'models',
      title: 'Models',
      numeric: true,
      render: ({ value }) => `${formatNumber(counts.get(value.name) ?? 0)}${complete ? '' : '+'}`,
    },
  ]
}

/** Form of the credential: its value is a secret. */
function Credential({ params }: { params: unknown }) {
  const apiKey = isObject(params) ? params['apiKey'] : undefined
  if (apiKey === undefined) return <span className="text-ink-faint">of the client</span>
  if (typeof apiKey === 'string' && apiKey.startsWith('$'))
    return <code className="text-xs break-all text-ink-soft">{apiKey}</code>
  return <Badge tone="good">{isObject(apiKey) ? 'in a file' : 'stored'}</Badge>
}
