import { Network, Shield } from 'lucide-react'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { ButtonLink } from '../../../components/action/button.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Segmented } from '../../../components/form/segmented.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { useVisible, type VisibleItem, type VisibleLists } from '../queries.ts'
import { queryOf, readViewer, textsOf } from './viewer.ts'
import { ViewerForm } from './viewer-form.tsx'
import { VisibleList } from './visible-list.tsx'

/** The lists that a client receives, and the rules that hide the rest. */
export default function AccessPage() {
  const [parameters, setParameters] = useSearchParams()
  const texts = textsOf(parameters)
  const read = readViewer(texts)
  const lists = useVisible(read.kind === 'viewer' ? read.viewer : undefined)
  return (
    <Page
      title="Access"
      about="Enter a client, and see the tools, prompts and resources it gets, with the rule that decides on each."
      actions={
        <ButtonLink icon={Shield} href="/mcp/policies/mcpAuthorization">
          Edit the rules
        </ButtonLink>
      }
    >
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[24rem_minmax(0,1fr)]">
        <ViewerForm texts={texts} onShow={(next) => setParameters(queryOf(next), { replace: true })} />
        <div className="min-w-0 space-y-4" aria-live="polite">
          {lists.error ? (
            <ErrorState error={lists.error} onRetry={() => void lists.refetch()} />
          ) : lists.data ? (
            <Lists lists={lists.data} />
          ) : (
            <Card>
              <SkeletonLines count={8} />
            </Card>
          )}
        </div>
      </div>
    </Page>
  )
}

const kinds = [
  ['tool', 'tools'],
  ['prompt', 'prompts'],
  ['resource', 'resources'],
  ['resource template', 'resourceTemplates'],
] as const

type ListName = (typeof kinds)[number][1]
type Filter = 'all' | 'visible' | 'hidden'

function Lists({ lists }: { lists: VisibleLists }) {
  const [kind, setKind] = useState<ListName>('tools')
  const [filter, setFilter] = useState<Filter>('all')
  const [search, setSearch] = useState('')
  const failed = lists.targets.filter(({ state }) => state !== 'connected')
  if (lists.targets.length === 0)
    return (
      <Card>
        <EmptyState
          icon={Network}
          title="No MCP server yet"
          action={
            <ButtonLink tone="primary" href="/mcp/servers/new">
              Add a server
            </ButtonLink>
          }
        >
          Rules decide on the tools of servers.
        </EmptyState>
      </Card>
    )
  const ofKind = lists[kind]
  const visible = ofKind.filter((item) => item.visible)
  const wanted = search.trim().toLowerCase()
  const shown = ofKind.filter(
    (item) =>
      (filter === 'all' || item.visible === (filter === 'visible')) &&
      (wanted === '' || item.exposedName.toLowerCase().includes(wanted)),
  )
  return (
    <>
      {!lists.hasRules && (
        <Notice
          title="There are no rules for single tools"
          action={
            <ButtonLink size="small" href="/mcp/policies/mcpAuthorization">
              Add rules
            </ButtonLink>
          }
        >
          Every client that may use the endpoint gets all lists.
        </Notice>
      )}
      {failed.map((target) => (
        <Notice key={target.name} tone="warn" title={`The lists of ${target.name} are not known`}>
          {target.error ?? 'The session is still being opened.'}
        </Notice>
      ))}
      <Card flush>
        <div className="flex flex-wrap items-center gap-3 px-4 py-3 sm:px-5">
          <Segmented<ListName>
            label="List"
            value={kind}
            options={kinds.map(([noun, value]) => ({
              value,
              label: `${labelOf(noun)} ${countsOf(lists[value])}`,
            }))}
            onChange={setKind}
          />
          <Segmented<Filter>
            label="Selection"
            value={filter}
            options={[
              { value: 'all', label: 'All' },
              { value: 'visible', label: `Visible ${visible.length}` },
              { value: 'hidden', label: `Hidden ${ofKind.length - visible.length}` },
            ]}
            onChange={setFilter}
          />
          <SearchInput label="Search names" value={search} onChange={setSearch} />
        </div>
        <VisibleList
          key={`${kind} ${filter}`}
          label={filter === 'hidden' ? 'Hidden' : 'Items'}
          items={shown.map((item) => ({ ...item, kind }))}
        />
      </Card>
    </>
  )
}

function labelOf(noun: string): string {
  return noun === 'resource template' ? 'Templates' : `${noun.charAt(0).toUpperCase()}${noun.slice(1)}s`
}

/** `3 / 5`: visible of all. */
function countsOf(items: readonly VisibleItem[]): string {
  return `${items.filter(({ visible }) => visible).length} / ${items.length}`
}
