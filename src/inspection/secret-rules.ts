/**
 * The forms of credentials, by issuer: data. `sample` is the form as the issuer writes it, `{hex 32}` standing for 32
 * random characters; tests write credentials by it.
 *
 * Prefixes and lengths come from the issuers' documentation and, where `gitleaks` is named, from the rules of gitleaks
 * (https://github.com/gitleaks/gitleaks, config/gitleaks.toml; MIT licence, Copyright (c) 2019 Zachary Rice).
 */
export interface SecretRule {
  readonly label: string
  /** What precedes the part that varies; a pattern. */
  readonly prefix: string
  /** The part that varies; a pattern. */
  readonly body: string
  readonly sample: string
  /** The rule of gitleaks that it covers. */
  readonly gitleaks?: string
  /** It is taken only where it is random and not words: its prefix says too little. */
  readonly random?: true
}

export const alnum = '[A-Za-z0-9]'
export const url = String.raw`[A-Za-z0-9_\-]`
export const hex = '[0-9a-fA-F]'
export const base64 = '[A-Za-z0-9+/]'
const uuid = `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}`

const rule = (label: string, prefix: string, body: string, sample: string, gitleaks?: string): SecretRule => ({
  label,
  prefix,
  body,
  sample,
  ...(gitleaks === undefined ? {} : { gitleaks }),
})

const randomRule = (label: string, prefix: string, body: string, sample: string, gitleaks?: string): SecretRule => ({
  ...rule(label, prefix, body, sample, gitleaks),
  random: true,
})

/** Providers of models. */
const models: readonly SecretRule[] = [
  rule(
    'ANTHROPIC_KEY',
    String.raw`sk-ant-[a-z]{2,10}\d{2}-`,
    `${url}{40,200}`,
    'sk-ant-api03-{url 93}AA',
    'anthropic-api-key',
  ),
  rule(
    'OPENAI_KEY',
    'sk-(?:proj|svcacct|admin|None)-',
    `${url}{40,250}`,
    'sk-proj-{url 74}T3BlbkFJ{url 74}',
    'openai-api-key',
  ),
  randomRule('OPENAI_KEY', 'sk-', `${url}{20,250}`, 'sk-{alnum 20}T3BlbkFJ{alnum 20}', 'openai-api-key'),
  rule('BEDROCK_KEY', 'ABSK', `${base64}{100,300}={0,2}`, 'ABSK{base64 128}', 'aws-amazon-bedrock-api-key-long-lived'),
  rule('GOOGLE_KEY', 'AIza', `${url}{35}`, 'AIza{url 35}', 'gcp-api-key'),
  rule('GOOGLE_KEY', String.raw`AQ\.Ab`, `${url}{40,80}`, 'AQ.Ab{url 48}'),
  rule('HUGGINGFACE_TOKEN', '(?:hf|api_org)_', `${alnum}{34}`, 'hf_{alnum 34}', 'huggingface-access-token'),
  rule('XAI_KEY', 'xai-', `${alnum}{60,120}`, 'xai-{alnum 80}'),
  rule('GROQ_KEY', 'gsk_', `${alnum}{40,80}`, 'gsk_{alnum 52}'),
  rule('PERPLEXITY_KEY', 'pplx-', `${alnum}{40,80}`, 'pplx-{alnum 48}', 'perplexity-api-key'),
  rule('REPLICATE_TOKEN', 'r8_', `${alnum}{37,40}`, 'r8_{alnum 37}'),
  rule('NVIDIA_KEY', 'nvapi-', `${url}{40,120}`, 'nvapi-{url 64}'),
  rule('CEREBRAS_KEY', 'csk-', `${alnum}{40,60}`, 'csk-{alnum 48}'),
  rule('LANGSMITH_KEY', 'lsv2_(?:pt|sk)_', `${hex}{32}_${hex}{10}`, 'lsv2_pt_{hex 32}_{hex 10}'),
  rule('PINECONE_KEY', 'pcsk_', `${url}{40,90}`, 'pcsk_{alnum 6}_{alnum 63}'),
  rule('TAVILY_KEY', 'tvly-', `${url}{28,60}`, 'tvly-{alnum 32}'),
  rule('ELEVENLABS_KEY', 'sk_', `${hex}{48}`, 'sk_{hex 48}'),
]

/** Clouds and what runs in them. */
const clouds: readonly SecretRule[] = [
  rule('AWS_KEY', '(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])', '[A-Z2-7]{16}', 'AKIA{base32 16}', 'aws-access-token'),
  rule('GOOGLE_KEY', 'GOCSPX-', `${url}{28}`, 'GOCSPX-{url 28}'),
  rule('ALIBABA_KEY', 'LTAI', `${alnum}{16,24}`, 'LTAI{alnum 20}', 'alibaba-access-key-id'),
  rule(
    'CLOUDFLARE_KEY',
    String.raw`v1\.0-`,
    `${hex}{24}-${hex}{146}`,
    'v1.0-{hex 24}-{hex 146}',
    'cloudflare-origin-ca-key',
  ),
  rule('DATABRICKS_TOKEN', 'dapi', `${hex}{32}(?:-[0-9])?`, 'dapi{hex 32}-2', 'databricks-api-token'),
  rule('DIGITALOCEAN_TOKEN', 'do[opr]_v1_', `${hex}{64}`, 'dop_v1_{hex 64}', 'digitalocean-pat'),
  rule(
    'DYNATRACE_TOKEN',
    String.raw`dt0[a-z]\d\d\.`,
    String.raw`${alnum}{24}\.${alnum}{64}`,
    'dt0c01.{ALNUM 24}.{ALNUM 64}',
    'dynatrace-api-token',
  ),
  rule('FLY_TOKEN', 'fo1_', `${url}{43}`, 'fo1_{url 43}', 'flyio-access-token'),
  rule('HEROKU_KEY', 'HRKU-', `${url}{60}`, 'HRKU-AA{url 58}', 'heroku-api-key-v2'),
  rule('NETLIFY_TOKEN', 'nf[pcoub]_', `${alnum}{36}`, 'nfp_{alnum 36}'),
  rule('OPENSHIFT_TOKEN', 'sha256~', `${url}{43}`, 'sha256~{url 43}', 'openshift-user-token'),
  rule(
    'PLANETSCALE_TOKEN',
    'pscale_(?:tkn|oauth|pw)_',
    String.raw`[\w=.\-]{32,64}`,
    'pscale_tkn_{alnum 43}',
    'planetscale-api-token',
  ),
  rule('SCALINGO_TOKEN', 'tk-us-', `${url}{48}`, 'tk-us-{url 48}', 'scalingo-api-token'),
  rule('SUPABASE_KEY', 'sb(?:p_|_secret_)', `${url}{31,50}`, 'sbp_{hex 40}'),
  rule('TAILSCALE_KEY', 'tskey-[a-z]{3,9}-', `${url}{20,60}`, 'tskey-auth-{alnum 17}-{alnum 32}'),
  rule(
    'YANDEX_KEY',
    String.raw`t1\.`,
    String.raw`${url}{5,150}={0,2}\.${url}{86}={0,2}`,
    't1.{url 40}.{url 86}',
    'yandex-access-token',
  ),
  rule('YANDEX_KEY', 'AQVN', `${url}{35,38}`, 'AQVN{url 36}', 'yandex-api-key'),
  rule('YANDEX_KEY', 'YC', `${url}{38}`, 'YC{url 38}', 'yandex-aws-access-token'),
]

/** Where code is kept, built and watched. */
const development: readonly SecretRule[] = [
  rule('GITHUB_TOKEN', 'gh[pousr]_', `${alnum}{36,251}`, 'ghp_{alnum 36}', 'github-pat'),
  rule(
    'GITHUB_TOKEN',
    'github_pat_',
    '[A-Za-z0-9_]{60,120}',
    'github_pat_{alnum 22}_{alnum 59}',
    'github-fine-grained-pat',
  ),
  rule(
    'GITLAB_TOKEN',
    'gl(?:pat|ptt|rt|rtr|dt|soat|cbt|ft|ffct|imt|agent|oas|wt)-',
    String.raw`${url}{20,300}(?:\.[0-9a-z]{2}(?:\.[0-9a-z]{9}|[0-9a-z]{7}))?`,
    'glpat-{url 27}.01.{lower 9}',
    'gitlab-pat',
  ),
  rule('GITLAB_TOKEN', 'GR1348941', `${url}{20}`, 'GR1348941{url 20}', 'gitlab-rrt'),
  rule('GITLAB_TOKEN', '_gitlab_session=', '[0-9a-z]{32}', '_gitlab_session={lower 32}', 'gitlab-session-cookie'),
  rule('NPM_TOKEN', 'npm_', `${alnum}{36}`, 'npm_{alnum 36}', 'npm-access-token'),
  rule('RUBYGEMS_TOKEN', 'rubygems_', `${hex}{48}`, 'rubygems_{hex 48}', 'rubygems-api-token'),
  rule('CLOJARS_TOKEN', 'CLOJARS_', '[A-Za-z0-9]{60}', 'CLOJARS_{lower 60}', 'clojars-api-token'),
  rule('DOCKER_TOKEN', 'dckr_(?:pat|oat)_', `${url}{27,60}`, 'dckr_pat_{url 27}'),
  rule('ARTIFACTORY_KEY', 'AKCp', `${alnum}{69}`, 'AKCp{alnum 69}', 'artifactory-api-key'),
  rule('ARTIFACTORY_KEY', 'cmVmd', `${alnum}{59}`, 'cmVmd{alnum 59}', 'artifactory-reference-token'),
  rule(
    'ATLASSIAN_TOKEN',
    'AT(?:ATT|CTT)3',
    String.raw`[A-Za-z0-9_\-=]{150,300}`,
    'ATATT3{url 186}',
    'atlassian-api-token',
  ),
  rule('BITBUCKET_PASSWORD', 'ATBB', `${alnum}{32}`, 'ATBB{alnum 32}'),
  rule('CIRCLECI_TOKEN', 'CCIPAT_', `${url}{40,90}`, 'CCIPAT_{alnum 22}_{hex 40}'),
  rule(
    'DOPPLER_TOKEN',
    String.raw`dp\.(?:pt|st|ct|sa|scim|audit)\.`,
    String.raw`[A-Za-z0-9_\-.]{40,80}`,
    'dp.pt.{alnum 43}',
    'doppler-api-token',
  ),
  rule('GRAFANA_TOKEN', 'glc_', `${base64}{32,400}={0,3}`, 'glc_{base64 120}', 'grafana-cloud-api-token'),
  rule('GRAFANA_TOKEN', 'glsa_', `${alnum}{32}_${hex}{8}`, 'glsa_{alnum 32}_{hex 8}', 'grafana-service-account-token'),
  rule('GRAFANA_TOKEN', 'eyJrIjoi', `${base64}{60,400}={0,3}`, 'eyJrIjoi{alnum 90}', 'grafana-api-key'),
  rule(
    'HARNESS_TOKEN',
    String.raw`[ps]at\.`,
    String.raw`${url}{22}\.${alnum}{24}\.${alnum}{20}`,
    'pat.{url 22}.{alnum 24}.{alnum 20}',
    'harness-api-key',
  ),
  rule('INFRACOST_KEY', 'ico-', `${alnum}{32}`, 'ico-{alnum 32}', 'infracost-api-token'),
  rule('LAUNCHDARKLY_KEY', '(?:sdk|api)-', uuid, 'sdk-{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}'),
  rule('LINEAR_KEY', 'lin_(?:api|oauth)_', `${alnum}{40,64}`, 'lin_api_{alnum 40}', 'linear-api-key'),
  rule('NEW_RELIC_KEY', 'NRAK-', `${alnum}{27}`, 'NRAK-{ALNUM 27}', 'new-relic-user-api-key'),
  rule('NEW_RELIC_KEY', 'NRI[IQ]-', `${url}{32}`, 'NRII-{url 32}', 'new-relic-insert-key'),
  rule('NEW_RELIC_KEY', 'NRJS-', `${hex}{19}`, 'NRJS-{hex 19}', 'new-relic-browser-api-token'),
  rule('OCTOPUS_KEY', 'API-', '[A-Z0-9]{26}', 'API-{ALNUM 26}', 'octopus-deploy-api-key'),
  rule('POSTMAN_KEY', 'PMAK-', `${hex}{24}-${hex}{34}`, 'PMAK-{hex 24}-{hex 34}', 'postman-api-token'),
  rule('PREFECT_KEY', 'pnu_', `${alnum}{36}`, 'pnu_{alnum 36}', 'prefect-api-token'),
  rule('PULUMI_TOKEN', 'pul-', `${hex}{40}`, 'pul-{hex 40}', 'pulumi-api-token'),
  rule('README_KEY', 'rdme_', `${alnum}{70}`, 'rdme_{lower 70}', 'readme-api-token'),
  rule('SENTRY_TOKEN', 'sntryu_', `${hex}{64}`, 'sntryu_{hex 64}', 'sentry-user-token'),
  rule(
    'SENTRY_TOKEN',
    'sntrys_eyJ',
    '[A-Za-z0-9+/=_]{60,450}',
    'sntrys_eyJ{base64 120}_{base64 43}',
    'sentry-org-token',
  ),
  rule('SONAR_TOKEN', 'sq[upa]_', `${alnum}{40}`, 'squ_{hex 40}', 'sonar-api-token'),
  rule(
    'SOURCEGRAPH_TOKEN',
    `sgp_(?:(?:${hex}{16}|local)_)?`,
    `${hex}{40}`,
    'sgp_{hex 16}_{hex 40}',
    'sourcegraph-access-token',
  ),
  rule('VAULT_TOKEN', String.raw`hv[sbr]\.`, `${url}{24,300}`, 'hvs.{url 95}', 'vault-service-token'),
  randomRule('VAULT_TOKEN', String.raw`s\.`, `${alnum}{8}${alnum}{16}`, 's.{alnum 24}', 'vault-service-token'),
]

/** What speaks to people: mail, chat, calls. */
const messaging: readonly SecretRule[] = [
  rule('MAILGUN_KEY', '(?:pub)?key-', `${hex}{32}`, 'key-{hex 32}', 'mailgun-private-api-token'),
  rule(
    'SENDGRID_KEY',
    String.raw`SG\.`,
    String.raw`[A-Za-z0-9=_\-.]{66}`,
    'SG.{url 22}.{url 43}',
    'sendgrid-api-token',
  ),
  rule(
    'SENDINBLUE_KEY',
    'x(?:key|smtp)sib-',
    `${hex}{64}-${alnum}{16}`,
    'xkeysib-{hex 64}-{alnum 16}',
    'sendinblue-api-token',
  ),
  rule(
    'SLACK_TOKEN',
    'xoxb-',
    String.raw`\d{8,14}-${alnum}{10,26}(?:-${alnum}{10,40})?`,
    'xoxb-{digit 12}-{digit 13}-{alnum 24}',
    'slack-bot-token',
  ),
  rule(
    'SLACK_TOKEN',
    'xox[peosc]-',
    String.raw`(?:\d{9,14}-){2,3}${alnum}{20,64}`,
    'xoxp-{digit 12}-{digit 12}-{digit 12}-{hex 32}',
    'slack-user-token',
  ),
  rule(
    'SLACK_TOKEN',
    'xox[ar]-',
    String.raw`(?:\d-)?${alnum}{8,48}`,
    'xoxa-2-{alnum 40}',
    'slack-legacy-workspace-token',
  ),
  rule(
    'SLACK_TOKEN',
    String.raw`xoxe(?:\.xox[bp])?-\d-`,
    `${alnum}{140,170}`,
    'xoxe.xoxp-1-{ALNUM 166}',
    'slack-config-access-token',
  ),
  rule('SLACK_TOKEN', 'xoxd-', '[A-Za-z0-9%+/=_-]{60,400}', 'xoxd-{alnum 120}'),
  rule(
    'SLACK_TOKEN',
    String.raw`xapp-\d-`,
    String.raw`${alnum}{4,20}-\d{4,20}-${alnum}{4,100}`,
    'xapp-1-A{ALNUM 10}-{digit 13}-{hex 64}',
    'slack-app-token',
  ),
  rule(
    'SLACK_TOKEN',
    String.raw`hooks\.slack\.com/(?:services|workflows|triggers)/`,
    `${base64}{40,60}`,
    'hooks.slack.com/services/T{ALNUM 10}/B{ALNUM 10}/{alnum 24}',
    'slack-webhook-url',
  ),
  rule(
    'TEAMS_WEBHOOK',
    String.raw`webhook\.office\.com/webhookb2/`,
    String.raw`[a-z0-9\-]{36}@[a-z0-9\-]{36}/IncomingWebhook/[a-z0-9]{32}/[a-z0-9\-]{36}`,
    'webhook.office.com/webhookb2/{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}@{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}/IncomingWebhook/{hex 32}/{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}',
    'microsoft-teams-webhook',
  ),
  rule(
    'DISCORD_WEBHOOK',
    String.raw`discord(?:app)?\.com/api/webhooks/`,
    String.raw`\d{17,20}/${url}{60,80}`,
    'discord.com/api/webhooks/{digit 18}/{url 68}',
  ),
  rule('TWILIO_KEY', 'SK', `${hex}{32}`, 'SK{hex 32}', 'twilio-api-key'),
]

/** Trade, files and everything else. */
const others: readonly SecretRule[] = [
  rule(
    'ONEPASSWORD_KEY',
    'A3-',
    '[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}',
    'A3-{ALNUM 6}-{ALNUM 11}-{ALNUM 5}-{ALNUM 5}-{ALNUM 5}',
    '1password-secret-key',
  ),
  rule('ADOBE_SECRET', 'p8e-', `${alnum}{32}`, 'p8e-{hex 32}', 'adobe-client-secret'),
  rule(
    'AGE_KEY',
    'AGE-SECRET-KEY-1',
    '[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}',
    'AGE-SECRET-KEY-1{bech32 58}',
    'age-secret-key',
  ),
  rule(
    'AIRTABLE_TOKEN',
    `pat${alnum}{14}\\.`,
    `${hex}{64}`,
    'pat{alnum 14}.{hex 64}',
    'airtable-personnal-access-token',
  ),
  rule(
    'AUTHRESS_KEY',
    '(?:sc|ext|scauth|authress)_',
    String.raw`${alnum}{5,30}\.${alnum}{4,6}\.acc[_\-][a-z0-9\-]{10,32}\.[A-Za-z0-9+/_=\-]{30,120}`,
    'sc_{lower 10}.{lower 4}.acc_{lower 10}.{alnum 42}',
    'authress-service-client-access-key',
  ),
  rule('BEAMER_KEY', 'b_', String.raw`[A-Za-z0-9=_\-]{44}`, 'b_{alnum 44}', 'beamer-api-token'),
  rule('CLICKHOUSE_KEY', '4b1d', `${alnum}{38}`, '4b1d{alnum 38}', 'clickhouse-cloud-api-secret-key'),
  rule('CONTENTFUL_TOKEN', 'CFPAT-', `${url}{43}`, 'CFPAT-{url 43}'),
  rule(
    'DEFINED_KEY',
    'dnkey-',
    String.raw`[A-Za-z0-9=_\-]{26}-[A-Za-z0-9=_\-]{52}`,
    'dnkey-{alnum 26}-{alnum 52}',
    'defined-networking-api-token',
  ),
  rule(
    'DUFFEL_TOKEN',
    'duffel_(?:test|live)_',
    String.raw`[A-Za-z0-9_\-=]{43}`,
    'duffel_test_{url 43}',
    'duffel-api-token',
  ),
  rule('EASYPOST_KEY', 'EZ[AT]K', `${alnum}{54}`, 'EZAK{alnum 54}', 'easypost-api-token'),
  rule('FACEBOOK_TOKEN', 'EAA[MC]', `${alnum}{100,450}`, 'EAAM{alnum 180}', 'facebook-page-access-token'),
  rule('FIGMA_TOKEN', 'fig[dour]_', `${url}{40,60}`, 'figd_{url 40}'),
  rule(
    'FLUTTERWAVE_KEY',
    'FLW(?:PUBK|SECK)(?:_TEST)?-',
    `${alnum}{32}-X`,
    'FLWSECK_TEST-{hex 32}-X',
    'flutterwave-secret-key',
  ),
  rule('FLUTTERWAVE_KEY', 'FLWSECK_TEST', `-${alnum}{12}`, 'FLWSECK_TEST-{hex 12}', 'flutterwave-encryption-key'),
  rule('FRAMEIO_TOKEN', 'fio-u-', String.raw`[A-Za-z0-9\-_=]{64}`, 'fio-u-{url 64}', 'frameio-api-token'),
  rule('GOCARDLESS_TOKEN', 'live_', String.raw`[A-Za-z0-9\-_=]{40}`, 'live_{alnum 40}', 'gocardless-api-token'),
  rule('INTRA_SECRET', 's-s4t2(?:ud|af)-', `${hex}{64}`, 's-s4t2ud-{hex 64}', 'intra42-client-secret'),
  rule('LOB_KEY', '(?:live|test)_(?:pub_)?', `${hex}{31,35}`, 'test_{hex 35}', 'lob-api-key'),
  rule(
    'MAPBOX_TOKEN',
    String.raw`[ps]k\.`,
    String.raw`${alnum}{60,120}\.${url}{22}`,
    'pk.{lower 60}.{lower 22}',
    'mapbox-api-token',
  ),
  rule('NOTION_TOKEN', 'ntn_', `${alnum}{40,60}`, 'ntn_{digit 11}{alnum 35}', 'notion-api-token'),
  rule('NOTION_TOKEN', 'secret_', `${alnum}{43}`, 'secret_{alnum 43}'),
  rule(
    'PLAID_TOKEN',
    'access-(?:sandbox|development|production)-',
    uuid,
    'access-sandbox-{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}',
    'plaid-api-token',
  ),
  rule(
    'SETTLEMINT_TOKEN',
    'sm_(?:aat|pat|sat)_',
    `${alnum}{16}`,
    'sm_aat_{alnum 16}',
    'settlemint-application-access-token',
  ),
  rule('SHIPPO_TOKEN', 'shippo_(?:live|test)_', `${hex}{40}`, 'shippo_live_{hex 40}', 'shippo-api-token'),
  rule('SHOPIFY_TOKEN', 'shp(?:at|ca|pa|ss|ua|ka|rt)_', `${hex}{32,64}`, 'shpat_{hex 32}', 'shopify-access-token'),
  rule('SQUARE_TOKEN', '(?:EAAA|sq0[a-z]{3}-)', `${url}{22,60}`, 'sq0atp-{url 22}', 'square-access-token'),
  rule('STRIPE_KEY', '(?:sk|rk)_(?:live|test|prod)_', `${alnum}{10,250}`, 'sk_live_{alnum 24}', 'stripe-access-token'),
  rule('STRIPE_KEY', 'whsec_', `${base64}{24,100}`, 'whsec_{alnum 32}'),
  rule('TWITTER_TOKEN', 'A{22}', '[A-Za-z0-9%]{80,100}', 'AAAAAAAAAAAAAAAAAAAAAA{alnum 90}', 'twitter-bearer-token'),
  rule('TYPEFORM_TOKEN', 'tfp_', String.raw`[A-Za-z0-9\-_.=]{44,59}`, 'tfp_{alnum 59}', 'typeform-api-token'),
]

/** Names of issuers whose credentials have no form of their own; from the rules of gitleaks that ask for the name. */
export const issuerNames =
  'adafruit|adobe|airtable|algolia|alibaba|artifactory|asana|atlassian|azure|beamer|bintray|bitbucket|bittrex|cloudflare|codecov|cohere|coinbase|confluence|confluent|contentful|datadog|discord|droneci|dropbox|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|gitter|heroku|hubspot|intercom|jfrog|jira|kraken|kucoin|launchdarkly|linear|linkedin|looker|mailgun|mattermost|meraki|message[_\\-]?bird|mistral|netlify|new[_\\-]?relic|nytimes|okta|plaid|private[_\\-]?ai|rapidapi|sendbird|sentry|snyk|sonar|sourcegraph|squarespace|sumo|telegram|travis|twitch|twitter|yandex|zendesk'

/** What says by itself that a credential follows. Not every token is one: those of pages lead through lists. */
export const credentialNames =
  '(?:api|access|auth|bearer|bot|client|deploy|encryption|master|personal|private|refresh|secret|service|session|signing|webhook)[_ .\\-]?(?:key|token|secret)|password|passwd|secret'

export const secretRules: readonly SecretRule[] = [...models, ...clouds, ...development, ...messaging, ...others]

/** Forms that begin with what varies, so that any word may begin one. */
export const unprefixedRules: readonly SecretRule[] = [
  rule(
    'AZURE_KEY',
    String.raw`[A-Za-z0-9_~.]{3}\dQ~`,
    String.raw`[A-Za-z0-9_~.\-]{31,34}`,
    'abc8Q~{alnum 34}',
    'azure-ad-client-secret',
  ),
  rule(
    'TERRAFORM_TOKEN',
    String.raw`${alnum}{14}\.atlasv1\.`,
    String.raw`[A-Za-z0-9_\-=]{60,70}`,
    '{alnum 14}.atlasv1.{alnum 67}',
    'hashicorp-tf-api-token',
  ),
  rule(
    'DISCORD_TOKEN',
    '[MNO]',
    String.raw`[A-Za-z0-9_\-]{23,27}\.${url}{6}\.${url}{27,38}`,
    'M{alnum 23}.{alnum 6}.{alnum 38}',
  ),
  rule('MAILCHIMP_KEY', `${hex}{32}`, '-us[0-9]{1,2}', '{hex 32}-us20', 'mailchimp-api-key'),
  rule('TELEGRAM_TOKEN', String.raw`\d{5,16}:A`, `${url}{34}`, '{digit 10}:A{url 34}', 'telegram-bot-api-token'),
  rule('FACEBOOK_TOKEN', String.raw`\d{15,16}[|%]`, `${url}{27,40}`, '{digit 15}|{url 27}', 'facebook-access-token'),
  rule('MAXMIND_KEY', `${alnum}{6}_`, `${alnum}{29}_mmk`, '{alnum 6}_{alnum 29}_mmk', 'maxmind-license-key'),
]
