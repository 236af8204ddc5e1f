import { Ban, CircleCheck, MoreHorizontal, Pencil, RefreshCw, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import { useKey, type VirtualKey } from '../../../api/llm/keys.ts'
import { type ConfigRecord, useRecord } from '../../../api/resources.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { IconButton } from '../../../components/action/icon-button.tsx'
import { Menu } from '../../../components/action/menu.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { editableRecord } from '../../../save/editable-value.ts'
import { readOnlyReason } from '../../../save/ownership.ts'
import { useSave } from '../../../save/save.tsx'
import { isObject } from '../../../schema-form/model/value.ts'
import { KeyDetails } from './key-details.tsx'
import { RotateDialog } from './rotate-dialog.tsx'

/** One virtual key: state, usage, budgets, limits; rotate, disable, edit, delete. */
export default function KeyPage() {
  const { id = '' } = useParams()
  const key = useKey(id)
  const { data } = key
  if (data === undefined) {
    return (
      <Page title="Key" actions={<ButtonLink href="/llm/keys">Back to the list</ButtonLink>}>
        {key.error ? (
          <ErrorState error={key.error} onRetry={() => void key.refetch()} />
        ) : (
          <Card>
            <SkeletonLines count={8} />
          </Card>
        )}
      </Page>
    )
  }
  return <LoadedKey virtualKey={data} />
}

function LoadedKey({ virtualKey }: { virtualKey: VirtualKey }) {
  const { id, name, scope } = virtualKey
  const isResource = scope === 'llm'
  const { data: loaded } = useRecord('llm.apiKey', isResource ? id : undefined)
  const record = loaded && (editableRecord(loaded) as ConfigRecord)
  const { data: whoami } = useWhoami()
  const { save, remove, busy, dialog } = useSave('llm.apiKey')
  const [rotating, setRotating] = useState(false)
  const [message, setMessage] = useState<string>()
  const [, navigate] = useLocation()
  const reason = isResource
    ? readOnlyReason(record, whoami)
    : `This key belongs to ${scope}, whose keys are part of its policy: change it there.`
  const offers = reason === undefined && record !== undefined

  const setDisabled = async (disabled: boolean) => {
    if (record === undefined) return
    const { disabled: _, ...rest } = isObject(record.value) ? record.value : {}
    const outcome = await save({ record, value: disabled ? { ...rest, disabled } : rest })
    setMessage(outcome.kind === 'refused' ? outcome.message : undefined)
  }
  const removeKey = async () => {
    if (record === undefined) return
    const outcome = await remove(record)
    if (outcome.kind === 'removed') navigate('/llm/keys')
    setMessage(outcome.kind === 'refused' ? outcome.message : undefined)
  }
  const isDisabled = virtualKey.disabled === true

  return (
    <Page
      title={name ?? 'Unnamed key'}
      about={<span className="font-mono text-xs">{id}</span>}
      actions={
        offers && (
          <>
            <Button icon={RefreshCw} onClick={() => setRotating(true)}>
              Rotate
            </Button>
            <Button
              icon={isDisabled ? CircleCheck : Ban}
              disabled={busy}
              onClick={() => void setDisabled(!isDisabled)}
            >
              {isDisabled ? 'Enable' : 'Disable'}
            </Button>
            <ButtonLink tone="primary" icon={Pencil} href={`/llm/keys/${encodeURIComponent(id)}/edit`}>
              Edit
            </ButtonLink>
            <Menu
              trigger={<IconButton icon={MoreHorizontal} label="More actions" />}
              items={[
                {
                  kind: 'item',
                  label: 'Delete key',
                  icon: Trash2,
                  danger: true,
                  disabled: busy,
                  onSelect: () => void removeKey(),
                },
              ]}
            />
          </>
        )
      }
    >
      {reason && <Notice title={reason} />}
      {message && <Notice tone="bad" title={message} />}
      <KeyDetails virtualKey={virtualKey} record={loaded} />
      {rotating && <RotateDialog virtualKey={virtualKey} onClose={() => setRotating(false)} />}
      {dialog}
    </Page>
  )
}
