import { useId } from 'react'
import { Button } from '../../../components/action/button.tsx'
import { Input } from '../../../components/form/input.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Select } from '../../../components/form/select.tsx'
import type { HistoryAddress } from './use-history-address.ts'

const kinds: readonly (readonly [kind: string, label: string])[] = [
  ['llm.model', 'Models'],
  ['llm.virtualModel', 'Virtual models'],
  ['llm.provider', 'Providers'],
  ['llm.apiKey', 'Keys'],
  ['llm.policy', 'LLM policies'],
  ['modelCatalog', 'Prices'],
  ['mcp.target', 'MCP servers'],
  ['mcp.policy', 'MCP policies'],
  ['mcp.settings', 'MCP settings'],
  ['traffic.gateway', 'Gateways'],
  ['traffic.route', 'Routes'],
  ['traffic.tcpRoute', 'TCP routes'],
  ['ui.policy', 'Console policies'],
]

/** Filters of the list of changes. */
export function HistoryFilters({ address }: { address: HistoryAddress }) {
  const { query } = address
  const id = useId()
  return (
    <div className="flex flex-wrap items-end gap-3 px-4 py-3 sm:px-5">
      <SearchInput
        label="Search changes"
        placeholder="Search in values"
        value={query.text ?? ''}
        onChange={(text) => address.set('text', text)}
      />
      <div className="w-40">
        <Select
          aria-label="Kind"
          value={query.kind ?? ''}
          options={[{ value: '', label: 'All kinds' }, ...kinds.map(([value, label]) => ({ value, label }))]}
          onChange={(kind) => address.set('kind', kind)}
        />
      </div>
      <div className="w-44">
        <SearchInput
          label="Author"
          placeholder="Author or address"
          value={query.who ?? ''}
          onChange={(who) => address.set('who', who)}
        />
      </div>
      {(['from', 'to'] as const).map((bound) => (
        <div key={bound} className="flex items-center gap-2 text-xs text-ink-soft">
          <label htmlFor={`${id}-${bound}`}>{bound === 'from' ? 'From' : 'Before'}</label>
          <Input
            id={`${id}-${bound}`}
            type="date"
            className="w-36"
            value={query[bound] ?? ''}
            onChange={(event) => address.set(bound, event.target.value)}
          />
        </div>
      ))}
      {address.isFiltered && (
        <Button tone="quiet" size="small" onClick={address.clear}>
          Clear
        </Button>
      )}
    </div>
  )
}
