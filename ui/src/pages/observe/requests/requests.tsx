import { useMemo } from 'react'
import { useSearchParams } from 'wouter'
import { useWhoami } from '../../../api/whoami.ts'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { readFilters } from '../filters/url-filters.ts'
import { LedgerMissing } from '../ledger-missing.tsx'
import { RequestSearch } from './request-search.tsx'
import { RequestTail } from './request-tail.tsx'

type View = 'search' | 'live'

/** Requests of the ledger: search, and live. */
export default function Requests() {
  const [parameters, setParameters] = useSearchParams()
  const { data: whoami } = useWhoami()
  const filters = useMemo(() => readFilters(parameters), [parameters])
  const text = parameters.get('text') ?? ''
  const view: View = parameters.get('view') === 'live' ? 'live' : 'search'
  const setView = (next: View) =>
    setParameters((current) => {
      const changed = new URLSearchParams(current)
      changed.delete('cursor')
      if (next === 'live') changed.set('view', 'live')
      else changed.delete('view')
      return changed
    })
  return (
    <Page
      title="Requests"
      about="Every LLM request and MCP call, with the reason of its outcome."
      actions={
        <Segmented<View>
          label="View"
          value={view}
          onChange={setView}
          options={[
            { value: 'search', label: 'Search' },
            { value: 'live', label: 'Live' },
          ]}
        />
      }
    >
      {whoami?.ledger === false ? (
        <LedgerMissing />
      ) : view === 'live' ? (
        <RequestTail filters={filters} text={text} />
      ) : (
        <RequestSearch filters={filters} text={text} />
      )}
    </Page>
  )
}
